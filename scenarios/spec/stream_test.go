package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestResolveText: a text gives what the file gives, and its faults say where they are
// in the text.
func TestResolveText(t *testing.T) {
	files, err := filepath.Glob("testdata/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	l := loader(t)
	t.Chdir("testdata/valid")
	for _, file := range files {
		text, err := os.ReadFile(filepath.Base(file))
		if err != nil {
			t.Fatal(err)
		}
		want, err := l.Resolve(filepath.Base(file), []string{"cpus=64"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.ResolveText("stdin", text, []string{"cpus=64"})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if got.Digest() != want.Digest() {
			t.Errorf("%s: the text is another scenario than the file", file)
		}
	}
	nameless := "napisim: 1\nbase: full.yaml\n"
	if s, err := l.ResolveText("stdin", []byte(nameless), nil); err != nil || s.Name != "stdin" {
		t.Errorf("got %+v, %v", s, err)
	}
	text := "napisim: 1\nnaem: x\n"
	if _, err := l.ResolveText("stdin", []byte(text), []string{"cpus=none"}); err == nil ||
		!strings.Contains(err.Error(), "\nstdin:2:1: naem: ") || !strings.Contains(err.Error(), "--set #1: cpus") {
		t.Errorf("got %v", err)
	}
	if _, err := l.ResolveText("stdin", nil, nil); err == nil || err.Error() != "stdin: is empty" {
		t.Errorf("got %v", err)
	}
}
