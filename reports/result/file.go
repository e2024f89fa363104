package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile writes the JSON form of d to a file. Whoever opens the file finds
// the old content or the new one, never a part: see [ReplaceFile].
func WriteFile(path string, d *Document) error {
	data, err := Marshal(d)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return ReplaceFile(path, data)
}

// ReplaceFile gives a file new content in one step: it writes a temporary file
// in the same directory, where a rename is atomic, and renames it. After an
// error the old file is as it was and the temporary file is gone. A symbolic
// link keeps pointing to the file that is replaced. A path that is no regular
// file, such as a pipe or a terminal, cannot be replaced and is written to.
func ReplaceFile(path string, data []byte) error {
	target := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved
	}
	mode := fs.FileMode(0o666)
	switch info, err := os.Stat(target); {
	case err == nil && !info.Mode().IsRegular():
		return os.WriteFile(target, data, mode)
	case err == nil:
		mode = info.Mode().Perm()
	}
	temporary, err := createBeside(target, mode)
	if err != nil {
		return err
	}
	if err := fill(temporary, data); err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	if err := os.Rename(temporary.Name(), target); err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

// createBeside creates a new file in the directory of path. os.CreateTemp would
// make it readable by its owner only, whatever the umask says, and the rename
// would keep it so.
func createBeside(path string, mode fs.FileMode) (*os.File, error) {
	const attempts = 1000
	for i := range attempts {
		name := fmt.Sprintf("%s.%d-%d.tmp", path, os.Getpid(), i)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return f, err
	}
	return nil, fmt.Errorf("%s: no free name for a temporary file", path)
}

// fill writes data, makes it durable and closes f.
func fill(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	// Without the sync a crash soon after the rename may leave an empty file.
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
