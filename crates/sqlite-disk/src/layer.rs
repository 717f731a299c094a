//! The VFS: a table of C functions through which SQLite uses a [`Disk`]. It only translates
//! arguments. All unsafe code of the crate is here, and relies on SQLite's guarantees for a VFS:
//! the pointers that it passes are valid for the call, a file belongs to one connection, and a
//! closed file is not used again.
#![expect(unsafe_code, reason = "SQLite takes a file layer only as a table of C functions")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr, slice,
    sync::{
        Arc,
        atomic::{Ordering::SeqCst, fence},
    },
};

use rusqlite::ffi;

use crate::{
    Disk,
    disk::FileResult,
    shared::{FileState, LocksHeld, Mode},
};

/// Structure that SQLite allocates for each open file; it only knows the first field.
#[repr(C)]
struct Handle {
    methods: ffi::sqlite3_file,
    file: *mut OpenFile,
}

struct OpenFile {
    disk: Disk,
    name: String,
    /// Whether the file is deleted when it is closed.
    temporary: bool,
    shared: Arc<FileState>,
    held: LocksHeld,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(lock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Registers the disk with SQLite. Clock, sleep and randomness come from the default VFS.
pub(crate) fn register(name: &str, disk: Disk) {
    let Ok(name) = CString::new(name) else { panic!("the name {name:?} holds a zero byte") };
    // SAFETY: asks for the default VFS, which always exists and is never freed.
    let mut layer = unsafe { *ffi::sqlite3_vfs_find(ptr::null()) };
    layer.szOsFile = c_int::try_from(size_of::<Handle>()).unwrap_or(c_int::MAX);
    layer.pNext = ptr::null_mut();
    layer.zName = name.into_raw();
    layer.pAppData = Box::into_raw(Box::new(disk)).cast();
    layer.xOpen = Some(open);
    layer.xDelete = Some(delete);
    layer.xAccess = Some(access);
    layer.xFullPathname = Some(full_pathname);
    // SAFETY: the layer, its name and its disk are never freed.
    let code = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(layer)), 0) };
    assert_eq!(code, ffi::SQLITE_OK, "SQLite refused the layer");
}

fn code(answer: FileResult<()>) -> c_int {
    answer.err().unwrap_or(ffi::SQLITE_OK)
}

fn size(value: i64) -> usize {
    usize::try_from(value).unwrap_or_default()
}

/// # Safety
/// `layer` was created by [`register`].
unsafe fn disk<'a>(layer: *mut ffi::sqlite3_vfs) -> &'a Disk {
    // SAFETY: `register` set the data to a disk that is never freed.
    unsafe { &*(*layer).pAppData.cast::<Disk>() }
}

/// # Safety
/// `file` was opened by [`open`] and not closed, and no other reference to it is alive.
unsafe fn opened<'a>(file: *mut ffi::sqlite3_file) -> &'a mut OpenFile {
    // SAFETY: `open` put the pointer there, and `close` alone frees it.
    unsafe { &mut *(*file.cast::<Handle>()).file }
}

/// # Safety
/// `text` is a C string.
unsafe fn name_of(text: *const c_char) -> String {
    // SAFETY: the caller passes a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

unsafe extern "C" fn open(
    layer: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let handle = file.cast::<Handle>();
    // SAFETY: SQLite passes a valid layer and name, and room for a handle. The methods must be set also
    // if the open fails; null says that there is nothing to close.
    unsafe {
        (*handle).methods.pMethods = ptr::null();
        let disk = disk(layer);
        let name = if name.is_null() { disk.nameless() } else { name_of(name) };
        if let Err(code) = disk.open(&name) {
            return code;
        }
        let shared = disk.shared(&name);
        let (disk, held) = (disk.clone(), LocksHeld::default());
        let temporary = flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0;
        let file = OpenFile { disk, name, temporary, shared, held };
        (*handle).file = Box::into_raw(Box::new(file));
        (*handle).methods.pMethods = &METHODS;
        if !flags_out.is_null() {
            *flags_out = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(
    layer: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _sync_directory: c_int,
) -> c_int {
    // SAFETY: SQLite passes a valid layer and name.
    unsafe { code(disk(layer).delete(&name_of(name))) }
}

unsafe extern "C" fn access(
    layer: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _flags: c_int,
    found: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes a valid layer, name and place for the answer.
    unsafe { *found = c_int::from(disk(layer).exists(&name_of(name))) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(
    _layer: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes a C string and a buffer of `room` bytes.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > size(room.into()) {
            return ffi::SQLITE_CANTOPEN;
        }
        ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the file is open, and SQLite does not use it again.
    let mut open = unsafe { Box::from_raw((*file.cast::<Handle>()).file) };
    open.shared.release(&mut open.held);
    if open.temporary {
        open.disk.forget(&open.name);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: the file is open, and the buffer has room for `length` bytes.
    let (file, buffer) = unsafe {
        (opened(file), slice::from_raw_parts_mut(buffer.cast::<u8>(), size(length.into())))
    };
    match file.disk.read(&file.name, size(offset), buffer) {
        Err(code) => code,
        Ok(length) if length == buffer.len() => ffi::SQLITE_OK,
        Ok(length) => {
            buffer[length..].fill(0);
            ffi::SQLITE_IOERR_SHORT_READ
        }
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: the file is open, and there are `length` bytes.
    let (file, bytes) =
        unsafe { (opened(file), slice::from_raw_parts(bytes.cast::<u8>(), size(length.into()))) };
    code(file.disk.write(&file.name, size(offset), bytes))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: i64) -> c_int {
    // SAFETY: the file is open.
    let file = unsafe { opened(file) };
    code(file.disk.resize(&file.name, size(length)))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: the file is open.
    let file = unsafe { opened(file) };
    code(file.disk.sync(&file.name))
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, length: *mut i64) -> c_int {
    // SAFETY: the file is open, and there is a place for the answer.
    let (file, length) = unsafe { (opened(file), &mut *length) };
    match file.disk.size(&file.name) {
        Err(code) => code,
        Ok(bytes) => {
            *length = i64::try_from(bytes).unwrap_or(i64::MAX);
            ffi::SQLITE_OK
        }
    }
}

/// Locks on the file itself never conflict: a store's connections write only through the
/// write-ahead log, which has its own locks, and no second process sees this disk.
unsafe extern "C" fn lock(_file: *mut ffi::sqlite3_file, _level: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(
    _file: *mut ffi::sqlite3_file,
    reserved: *mut c_int,
) -> c_int {
    // SAFETY: there is a place for the answer.
    unsafe { *reserved = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(
    _file: *mut ffi::sqlite3_file,
    _operation: c_int,
    _argument: *mut c_void,
) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    4096
}

/// The same characteristics as a file of the operating system.
unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    index: c_int,
    bytes: c_int,
    make: c_int,
    region: *mut *mut c_void,
) -> c_int {
    // SAFETY: the file is open, and there is a place for the answer.
    let (file, region) = unsafe { (opened(file), &mut *region) };
    let found = file.shared.region(size(index.into()), size(bytes.into()), make != 0);
    *region = found.map_or(ptr::null_mut(), <*mut u8>::cast);
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the file is open.
    let file = unsafe { opened(file) };
    let mode = if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
        Mode::None
    } else if flags & ffi::SQLITE_SHM_EXCLUSIVE != 0 {
        Mode::Exclusive
    } else {
        Mode::FileState
    };
    let range = size(first.into())..size((first + count).into());
    code(file.shared.lock(&mut file.held, range, mode))
}

unsafe extern "C" fn shm_barrier(_file: *mut ffi::sqlite3_file) {
    fence(SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: the file is open.
    let file = unsafe { opened(file) };
    file.shared.release(&mut file.held);
    ffi::SQLITE_OK
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, OpenFlags};

    use super::*;

    /// Two connections whose temporary tables do not fit into their caches.
    #[test]
    fn files_without_a_name_are_apart_and_do_not_stay() {
        let disk = Disk::register("nameless");
        let fill = |byte: u8| {
            let flags = OpenFlags::default();
            let connection =
                Connection::open_with_flags_and_vfs("main", flags, "nameless").unwrap();
            let sql = format!(
                "PRAGMA temp_store = file; CREATE TEMP TABLE t (x); PRAGMA temp.cache_size = 5;
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
                 INSERT INTO t SELECT replace(hex(zeroblob(2000)), '00', '{byte}') FROM n;"
            );
            connection.execute_batch(&sql).unwrap();
            connection
        };
        let connections = [(1, fill(1)), (2, fill(2))];
        assert!(disk.used() > 0, "the tables are on the disk");
        for (byte, connection) in &connections {
            let sql = format!("SELECT count(*) FROM t WHERE x LIKE '{byte}%{byte}'");
            let rows: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            assert_eq!(rows, 100);
        }
        drop(connections);
        assert_eq!(disk.used(), 0);
    }
}
