use std::os::unix::fs::PermissionsExt;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_folder_and_its_admin_key_are_for_their_owner_alone() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("a/b");
    let store = open(&folder, Knobs::default()).unwrap();
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join(ADMIN_KEY_FILE)), 0o600);
    let key = read_admin_key(&folder).unwrap();
    assert_eq!(store.authenticate(&key).unwrap().roles, "admin");
    let in_use = open(&folder, Knobs::default()).err().unwrap();
    assert!(in_use.for_people().contains("another process"), "{}", in_use.for_people());
    store.close();
    drop(store);
    let store = open(&folder, Knobs::default()).unwrap();
    assert_eq!(*read_admin_key(&folder).unwrap(), *key);
    assert_eq!(store.api_keys().len(), 1);
}

#[test]
fn a_key_file_left_by_a_crash_before_the_store_knew_it_is_made_known() {
    let temp = tempfile::tempdir().unwrap();
    try_open(temp.path(), Knobs::default()).unwrap().close();
    let file = temp.path().join(ADMIN_KEY_FILE);
    // An older build died after it had made the file and before it had written it.
    fs::write(&file, "").unwrap();
    open(temp.path(), Knobs::default()).unwrap().close();
    assert!(read_admin_key(temp.path()).is_ok());

    let temp = tempfile::tempdir().unwrap();
    try_open(temp.path(), Knobs::default()).unwrap().close();
    let key = new_admin_key();
    let file = temp.path().join(ADMIN_KEY_FILE);
    write_private(&file, format!("{}\n", *key).as_bytes()).unwrap();
    let store = open(temp.path(), Knobs::default()).unwrap();
    assert_eq!(store.authenticate(&key).unwrap().roles, "admin");
}

#[test]
fn processes_that_look_for_room_at_the_same_instant_do_not_meet() {
    let temp = tempfile::tempdir().unwrap();
    try_open(temp.path(), Knobs::default()).unwrap().close();
    let before = fs::read_dir(temp.path()).unwrap().count();
    std::thread::scope(|scope| {
        let looks = || (0..20).try_for_each(|_| room_to_write(temp.path()));
        let looking: Vec<_> = (0..4).map(|_| scope.spawn(looks)).collect();
        for one in looking {
            one.join().unwrap().unwrap();
        }
    });
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), before);
}

#[test]
fn another_admin_key_is_made_only_on_request_and_then_always() {
    let temp = tempfile::tempdir().unwrap();
    open(temp.path(), Knobs::default()).unwrap().close();
    let path = temp.path().join(ADMIN_KEY_FILE);
    let first = read_admin_key(temp.path()).unwrap();
    fs::remove_file(&path).unwrap();
    open(temp.path(), Knobs::default()).unwrap().close();
    assert!(!path.exists());
    assert!(read_admin_key(temp.path()).unwrap_err().for_people().contains("--new-admin-key"));
    let knobs = Knobs { new_admin_key: true, ..Knobs::default() };
    // Also where the file is there: its key may be known to somebody else.
    let mut keys = vec![first];
    for _ in 0..2 {
        // What an attempt before left behind is no hindrance.
        fs::write(temp.path().join("admin.key.next"), "half").unwrap();
        let store = open(temp.path(), knobs).unwrap();
        keys.push(read_admin_key(temp.path()).unwrap());
        assert_eq!(mode(&path), 0o600);
        assert!(keys.iter().all(|key| store.authenticate(key).is_some()));
        assert_eq!(store.api_keys().len(), keys.len());
        store.close();
    }
    assert!(keys[1] != keys[2]);
    assert!(!temp.path().join("admin.key.next").exists());
}
