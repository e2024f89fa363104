package napisim_test

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

// A tree is every Go file of the module, parsed.
type tree struct {
	fset   *token.FileSet
	files  []*source
	broken []string // files that do not parse; what was understood is in files
}

// A source is one Go file.
type source struct {
	path string // from the root, with slashes
	dir  string
	test bool
	tool bool // a generator that is in no package: //go:build ignore
	text []byte
	ast  *ast.File
}

// notOurs reports whether a file or directory is no part of the source: hidden or
// written by the Makefile.
func notOurs(name string) bool {
	base := path.Base(name)
	return name != "." && (strings.HasPrefix(base, ".") || name == "bin" || name == "out")
}

// readTree parses all Go files of fsys.
func readTree(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (notOurs(name) || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || notOurs(name):
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.broken = append(t.broken, err.Error())
		}
		if file != nil {
			t.files = append(t.files, &source{
				path: name,
				dir:  path.Dir(name),
				test: strings.HasSuffix(name, "_test.go"),
				tool: ignoredByBuild(file),
				text: text,
				ast:  file,
			})
		}
		return nil
	})
	return t, err
}

// ignoredByBuild reports whether a file has the constraint "ignore".
func ignoredByBuild(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			x, err := constraint.Parse(c.Text)
			if err == nil && !x.Eval(func(tag string) bool { return tag != "ignore" }) {
				return true
			}
		}
	}
	return false
}

// at writes a finding with its place.
func (t *tree) at(pos token.Pos, format string, args ...any) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d: ", p.Filename, p.Line) + fmt.Sprintf(format, args...)
}

// report fails the test once for each finding.
func report(t *testing.T, found []string) {
	t.Helper()
	for _, line := range found {
		t.Error(line)
	}
}

// repository is the tree that holds this test.
func repository(t *testing.T) *tree {
	t.Helper()
	r, err := readTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFilesParse(t *testing.T) {
	report(t, repository(t).broken)
}

// planted builds a tree in memory from files by name.
func planted(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// A plant is a small tree with a known number of faults: it shows that a checker
// is able to fail, and that it does not fail where it should not.
type plant struct {
	name  string
	files map[string]string
	want  []string // one piece of each finding, in order; none for a clean tree
}

// runPlants runs a checker on each plant and compares what it finds.
func runPlants(t *testing.T, check func(*tree) []string, plants []plant) {
	t.Helper()
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			tr, err := readTree(planted(p.files))
			if err != nil {
				t.Fatal(err)
			}
			report(t, tr.broken)
			sameFindings(t, check(tr), p.want)
		})
	}
}

func sameFindings(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d findings, want %d\ngot:  %q\nwant: %q", len(got), len(want), got, want)
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("finding %d\ngot:  %s\nwant: %s", i, got[i], want[i])
		}
	}
}
