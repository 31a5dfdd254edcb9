//! Line charts as SVG.

use plotters::prelude::*;

use crate::failure::Outcome;
use crate::report::results;

/// A named line.
pub type Line = (String, Vec<(f64, f64)>);

/// Draws `results/NAME.svg`.
pub fn lines(name: &str, title: &str, x: &str, y: &str, lines: &[Line]) -> Outcome<()> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let x_max = points().map(|point| point.0).fold(0.0, f64::max);
    let y_max = points().map(|point| point.1).fold(0.0, f64::max) * 1.05;
    let path = results().join(format!("{name}.svg"));
    let root = SVGBackend::new(&path, (900, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..x_max, 0.0..y_max)?;
    chart.configure_mesh().x_desc(x).y_desc(y).light_line_style(WHITE).draw()?;
    for (at, (label, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(at).to_rgba();
        let line = LineSeries::new(points.iter().copied(), color.stroke_width(2));
        chart
            .draw_series(line)?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    Ok(root.present()?)
}
