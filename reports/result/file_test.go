package result

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// names lists a directory, so that leftovers show.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := WriteFile(path, sample(t)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Read(f, path); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the directory holds %v", got)
	}
}

func TestWriteFileKeepsTheOldOnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, &Document{}); err == nil {
		t.Error("an invalid document was written")
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("the old file now holds %q", got)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the directory holds %v", got)
	}
}

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	link := filepath.Join(dir, "link")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("the file holds %q", got)
	}
	if os.SameFile(before, after) {
		t.Error("the file was overwritten in place: a reader could have seen a part of it")
	}
	if after.Mode().Perm() != 0o600 {
		t.Errorf("the mode became %v", after.Mode())
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced instead of the file it points to")
	}
}

// TestReplaceFilePassesStaleTemporaries leaves a temporary file behind, as a
// killed process does.
func TestReplaceFilePassesStaleTemporaries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	stale, err := createBeside(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer stale.Close()
	if err := ReplaceFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("the file holds %q", got)
	}
}

func TestReplaceFileErrors(t *testing.T) {
	dir := t.TempDir()
	if err := ReplaceFile(filepath.Join(dir, "missing", "a"), nil); err == nil {
		t.Error("a missing directory is no error")
	}
	if err := ReplaceFile(dir, nil); err == nil {
		t.Error("a directory was replaced")
	}
	if err := ReplaceFile(os.DevNull, []byte("x")); err != nil {
		t.Errorf("writing to a device: %v", err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Error("the device was replaced by a file")
	}
}
