package napisim_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// This file keeps the rules of the house for all code: budgets, comments, and no
// trace of the machine it was written on.

// Budgets; what is generated does not count.
const (
	maxFileLines     = 500
	maxFunctionLines = 80 // not in tests: a table is long and simple
	maxMethods       = 4  // of an interface
	maxFiles         = 10 // of a package, without tests
	maxDocLines      = 40 // of doc.go
)

// overBudget names what may exceed a budget, and why: a path for a file, a directory
// for a package's files, "directory.Name" for a function or an interface.
var overBudget = map[string]string{
	"cmd/napisim": "one file per subcommand",
	"softirq":     "one file per part of net/core/dev.c and kernel/softirq.c",
}

// checkBudgets returns what is longer or wider than the house allows.
func checkBudgets(t *tree) []string {
	var found []string
	over := func(pos token.Pos, key, what string, n, budget int) {
		if n > budget && overBudget[key] == "" {
			found = append(found, t.at(pos, "%s has %d %s, at most %d allowed", key, n, what, budget))
		}
	}
	count := map[string]int{}
	for _, s := range t.files {
		if ast.IsGenerated(s.ast) {
			continue
		}
		lines := bytes.Count(s.text, []byte("\n"))
		over(s.ast.Package, s.path, "lines", lines, maxFileLines)
		if path.Base(s.path) == "doc.go" {
			over(s.ast.Package, s.path, "lines", lines, maxDocLines)
		}
		if s.test {
			continue
		}
		if !s.tool {
			count[s.dir]++
		}
		for _, decl := range s.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				n := t.fset.Position(d.End()).Line - t.fset.Position(d.Pos()).Line + 1
				over(d.Pos(), s.dir+"."+qualified(d), "lines", n, maxFunctionLines)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok {
						over(ts.Pos(), s.dir+"."+ts.Name.Name, "methods", methods(t, s.dir, ts.Type), maxMethods)
					}
				}
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(count)) {
		if count[dir] > maxFiles && overBudget[dir] == "" {
			found = append(found, fmt.Sprintf("%s: package has %d files, at most %d allowed", dir, count[dir], maxFiles))
		}
	}
	return found
}

// qualified returns the name of a function, with its receiver's type if it has one.
func qualified(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	return receiver(d) + "." + d.Name.Name
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}

// methods counts the methods of an interface, those of embedded interfaces of the
// same package too; an interface of another package counts as one.
func methods(t *tree, dir string, x ast.Expr) int {
	face, ok := x.(*ast.InterfaceType)
	if !ok {
		return 0
	}
	n := 0
	for _, field := range face.Methods.List {
		switch embedded := field.Type.(type) {
		case *ast.FuncType:
			n += len(field.Names)
		case *ast.SelectorExpr:
			n++
		case *ast.Ident:
			n += methods(t, dir, t.typeOf(dir, embedded.Name))
		}
	}
	return n
}

// typeOf returns what a type of a package is declared as, nil if it is not found.
func (t *tree) typeOf(dir, name string) ast.Expr {
	for _, s := range t.files {
		if s.dir != dir || s.test {
			continue
		}
		for _, decl := range s.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				if ts := spec.(*ast.TypeSpec); ts.Name.Name == name {
					return ts.Type
				}
			}
		}
	}
	return nil
}

// checkPackageComments returns the packages without a package comment.
func checkPackageComments(t *tree) []string {
	commented, where := map[string]bool{}, map[string]token.Pos{}
	for _, s := range t.files {
		if s.test || s.tool {
			continue
		}
		if _, seen := where[s.dir]; !seen {
			where[s.dir] = s.ast.Package
		}
		start := "Package " + s.ast.Name.Name
		if s.ast.Name.Name == "main" {
			start = "Command " + path.Base(s.dir)
		}
		if startsWith(s.ast.Doc.Text(), start) {
			commented[s.dir] = true
		}
	}
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(where)) {
		if !commented[dir] {
			found = append(found, t.at(where[dir], "no file of %s has a comment \"Package name ...\" (\"Command name ...\" for a main package)", dir))
		}
	}
	return found
}

// checkDocs returns the exported names without a comment that starts with them. In
// a group a comment over the group, or behind the name, does as well.
func checkDocs(t *tree) []string {
	var found []string
	for _, s := range t.files {
		if s.test || s.tool || ast.IsGenerated(s.ast) {
			continue
		}
		lacks := func(name *ast.Ident, full string) {
			found = append(found, t.at(name.Pos(), "exported %s has no comment that starts with its name", full))
		}
		for _, decl := range s.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				visible := d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d)))
				if visible && !startsWith(d.Doc.Text(), d.Name.Name) {
					lacks(d.Name, qualified(d))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					for _, name := range undocumented(d, spec) {
						lacks(name, name.Name)
					}
				}
			}
		}
	}
	return found
}

// undocumented returns the exported names of one specification that lack a comment.
func undocumented(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		doc := spec.Doc
		if doc == nil && !d.Lparen.IsValid() {
			doc = d.Doc
		}
		text := doc.Text()
		for _, article := range []string{"A ", "An ", "The "} {
			text = strings.TrimPrefix(text, article)
		}
		if spec.Name.IsExported() && !startsWith(text, spec.Name.Name) {
			return []*ast.Ident{spec.Name}
		}
	case *ast.ValueSpec:
		if d.Lparen.IsValid() && (d.Doc != nil || spec.Comment != nil) {
			return nil
		}
		doc := spec.Doc
		if doc == nil {
			doc = d.Doc
		}
		var lacking []*ast.Ident
		for i, name := range spec.Names {
			if name.IsExported() && (i == 0 && !startsWith(doc.Text(), name.Name) || doc == nil) {
				lacking = append(lacking, name)
			}
		}
		return lacking
	}
	return nil
}

// startsWith reports whether a comment starts with a name as a whole word.
func startsWith(text, name string) bool {
	rest, ok := strings.CutPrefix(text, name)
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && !unicode.IsLetter(next) && !unicode.IsDigit(next) && next != '_'
}

// traces are what no file of a project mentions: where it was written, and through
// which hosts its modules came.
var traces = map[string]*regexp.Regexp{
	"a path of one machine": regexp.MustCompile(`(^|[^\w./*-])/(home|root|work|Users)/[\w.]`),
	"a module proxy":        regexp.MustCompile(`\b(proxy|sum|index)\.golang\.org\b|\bgoproxy\.`),
}

// checkTraces returns the lines of text files that mention one machine.
func checkTraces(fsys fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git" || name == ".tools" || name == "bin" || name == "out":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		for _, what := range slices.Sorted(maps.Keys(traces)) {
			if at := traces[what].FindIndex(text); at != nil {
				line := bytes.Count(text[:at[1]], []byte("\n")) + 1
				found = append(found, fmt.Sprintf("%s:%d: mentions %s", name, line, what))
			}
		}
		return nil
	})
	return found, err
}

func TestBudgets(t *testing.T) {
	report(t, checkBudgets(repository(t)))
}

func TestPackageComments(t *testing.T) {
	report(t, checkPackageComments(repository(t)))
}

func TestExportedNamesAreDocumented(t *testing.T) {
	report(t, checkDocs(repository(t)))
}

func TestNoTraces(t *testing.T) {
	found, err := checkTraces(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	report(t, found)
}

func TestBudgetsCanFail(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\n", n) }
	files := func(dir string, n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("%s/f%02d.go", dir, i)] = "package p"
			m[fmt.Sprintf("%s/f%02d_test.go", dir, i)] = "package p"
		}
		return m
	}
	one := func(text string) map[string]string { return map[string]string{"sim/a.go": "package sim\n" + text} }
	runPlants(t, checkBudgets, []plant{
		{"file", one(lines(499)), nil},
		{"long file", one(lines(500)), []string{"sim/a.go has 501 lines, at most 500"}},
		{"long test file", map[string]string{"sim/a_test.go": "package sim" + lines(501)}, []string{"501 lines"}},
		{"generated", map[string]string{"sim/a.go": "// Code generated by x. DO NOT EDIT.\n\npackage sim" + lines(500)}, nil},
		{"long doc.go", map[string]string{"sim/doc.go": "package sim" + lines(41)}, []string{"sim/doc.go has 41 lines, at most 40"}},
		{"function", one("func f() {" + lines(79) + "}"), nil},
		{"long function", one("func f() {" + lines(80) + "}"), []string{"sim.f has 81 lines, at most 80"}},
		{"long method", one("func (t *T[K]) f() {" + lines(80) + "}"), []string{"sim.T.f has 81 lines"}},
		{"long test", map[string]string{"sim/a_test.go": "package sim\nfunc f() {" + lines(80) + "}"}, nil},
		{"interface", one("type I interface{ a(); b(); c(); d() }"), nil},
		{"wide interface", one("type I interface{ a(); b(); c(); d(); e() }"), []string{"sim.I has 5 methods, at most 4"}},
		{"wide by embedding", one("type J interface{ a(); b(); c() }\ntype I interface{ J; io.Reader; d() }"), []string{"sim.I has 5"}},
		{"constraint", one("type I interface{ ~int | ~uint }"), nil},
		{"files", files("sim", 10), nil},
		{"many files", files("sim", 11), []string{"sim: package has 11 files, at most 10"}},
		{"named exception", files("cmd/napisim", 20), nil},
	})
}

func TestPackageCommentsCanFail(t *testing.T) {
	runPlants(t, checkPackageComments, []plant{
		{"clean", map[string]string{
			"sim/a.go": "package sim", "sim/doc.go": "// Package sim is.\npackage sim",
			"cmd/napisim/main.go": "// Command napisim runs.\npackage main", "sim/a_test.go": "package sim_test",
			"nic/gen.go": "//go:build ignore\n\npackage main", "model/a_test.go": "package model",
		}, nil},
		{"none", map[string]string{"sim/a.go": "package sim"}, []string{"sim/a.go:1: no file of sim has"}},
		{"no name", map[string]string{"sim/a.go": "// The engine.\npackage sim"}, []string{"no file of sim"}},
		{"another name", map[string]string{"sim/a.go": "// Package simple is.\npackage sim"}, []string{"no file of sim"}},
		{"only in a test", map[string]string{
			"sim/a.go": "package sim", "sim/a_test.go": "// Package sim is.\npackage sim",
		}, []string{"no file of sim"}},
	})
}

func TestExportedNamesCanFail(t *testing.T) {
	in := func(text string) map[string]string { return map[string]string{"sim/a.go": "package sim\n" + text} }
	runPlants(t, checkDocs, []plant{
		{"clean", in("// F does.\nfunc F() {}\n// A T is.\ntype T int\n// M does.\nfunc (T) M() {}\n// C is.\nconst C = 1"), nil},
		{"unexported", in("func f() {}\ntype t int\nfunc (t) M() {}\nvar v, w int"), nil},
		{"group", in("// Units of time.\nconst (\nA = 1\nB = 2\n)\nconst (\n// C is.\nC = 1\nD = 2 // a day\n)"), nil},
		{"two of one kind", in("// A and B are.\nvar A, B = 1, 2"), nil},
		{"function", in("func F() {}"), []string{"sim/a.go:2: exported F has no comment"}},
		{"wrong start", in("// Does it.\nfunc F() {}\n// Fast is.\nfunc Fa() {}"), []string{"exported F ", "exported Fa "}},
		{"method", in("// A T is.\ntype T[K any] int\nfunc (*T[K]) M() {}"), []string{"exported T.M "}},
		{"type", in("// Time.\ntype T int\ntype (\nU int\n)"), []string{"exported T ", "exported U "}},
		{"value", in("const C = 1\nvar V, W int"), []string{"exported C ", "exported V ", "exported W "}},
		{"in a group", in("const (\nA = 1\n// Second.\nB = 2\n)"), []string{"exported A ", "exported B "}},
		{"in a test", map[string]string{"sim/a_test.go": "package sim\nfunc F() {}"}, nil},
	})
}

func TestTracesCanFail(t *testing.T) {
	const home = "/" + "home/x/napisim"
	found, err := checkTraces(planted(map[string]string{
		"a.md":        "one\nsee " + home + "\n",
		"b/c.go":      "// from " + "proxy." + "golang.org",
		"d":           home,
		"e.png":       home + "\x00",
		"f.md":        "net/home/x ./home/x ../home/y https://example.org/home/x /proc/net and framework/x",
		".git/config": home,
		".tools/x":    home,
	}))
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, found, []string{"a.md:2: mentions a path", "b/c.go:1: mentions a module proxy", "d:1: mentions a path"})
}
