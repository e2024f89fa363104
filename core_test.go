package napisim_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file keeps the rules for simulated code, everything below scenarios: no
// goroutine, channel or select, no random number outside the run's streams, and no
// global variable that can change. A run could otherwise differ from the next.

// changingGlobals names the variables of the core that break checkGlobals' shapes
// with good reason: "directory.name" and the reason.
var changingGlobals = map[string]string{}

// checkConcurrency returns each use of goroutines and channels in the core.
func checkConcurrency(t *tree) []string {
	var found []string
	for _, s := range t.files {
		if !s.inCore() {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "go statement"
			case *ast.ChanType:
				what = "channel type"
			case *ast.SelectStmt:
				what = "select statement"
			case *ast.SendStmt:
				what = "send"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					what = "receive"
				}
			}
			if what != "" {
				found = append(found, t.at(n.Pos(), "%s in simulated code: the engine alone decides who runs", what))
			}
			return true
		})
	}
	return found
}

// A corePackage is the files of one package of the core with its own names resolved.
// What other packages export stays unknown: nothing here needs it.
type corePackage struct {
	dir   string
	files []*source
	info  *types.Info
}

// corePackages resolves the packages of the core, by directory.
func corePackages(t *tree) []corePackage {
	byDir := map[string][]*source{}
	for _, s := range t.files {
		if s.inCore() {
			byDir[s.dir] = append(byDir[s.dir], s)
		}
	}
	var all []corePackage
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		p := corePackage{dir, byDir[dir], &types.Info{
			Defs: map[*ast.Ident]types.Object{},
			Uses: map[*ast.Ident]types.Object{},
		}}
		var files []*ast.File
		for _, s := range p.files {
			files = append(files, s.ast)
		}
		conf := types.Config{Importer: hollow{}, Error: func(error) {}}
		_, _ = conf.Check(dir, t.fset, files, p.info) // unknown imports are errors, by design
		all = append(all, p)
	}
	return all
}

// hollow imports every path as an empty package.
type hollow struct{}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// Import returns an empty package with the name that the path suggests.
func (hollow) Import(imp string) (*types.Package, error) {
	name := path.Base(imp)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(imp))
	}
	p := types.NewPackage(imp, name)
	p.MarkComplete()
	return p, nil
}

// checkRandom returns the uses of math/rand/v2's global generator in the core.
func checkRandom(t *tree) []string {
	var found []string
	for _, p := range corePackages(t) {
		for _, s := range p.files {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, ok := sel.X.(*ast.Ident)
				if !ok {
					return true
				}
				pkg, ok := p.info.Uses[x].(*types.PkgName)
				if ok && pkg.Imported().Path() == "math/rand/v2" && drawsGlobally(sel.Sel.Name) {
					found = append(found, t.at(sel.Pos(), "rand.%s draws from the global generator: use a stream of the run", sel.Sel.Name))
				}
				return true
			})
		}
	}
	return found
}

// drawsGlobally reports whether a name of math/rand/v2 is a draw and not a type or
// a constructor.
func drawsGlobally(name string) bool {
	types := []string{"ChaCha8", "PCG", "Rand", "Source", "Zipf"}
	return !slices.Contains(types, strings.TrimPrefix(name, "New")) && name != "New"
}

// checkGlobals returns the package-level variables of the core that could change.
// Allowed are interface guards, error sentinels, tables written as a slice, array or
// map literal, and the names in changingGlobals; none of them may be written to.
func checkGlobals(t *tree) []string {
	var found []string
	for _, p := range corePackages(t) {
		written := p.written()
		for _, s := range p.files {
			for _, decl := range s.ast.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok || gen.Tok != token.VAR {
					continue
				}
				for _, spec := range gen.Specs {
					found = append(found, p.faultyGlobals(t, spec.(*ast.ValueSpec), written)...)
				}
			}
		}
	}
	return found
}

// faultyGlobals is checkGlobals for one declaration.
func (p *corePackage) faultyGlobals(t *tree, spec *ast.ValueSpec, written map[types.Object]token.Pos) []string {
	var found []string
	for i, name := range spec.Names {
		if _, named := changingGlobals[p.dir+"."+name.Name]; name.Name == "_" || named {
			continue
		}
		var value ast.Expr
		if len(spec.Values) == len(spec.Names) {
			value = spec.Values[i]
		}
		if !isSentinel(name.Name, value) && !p.isTable(name, value) {
			found = append(found, t.at(name.Pos(),
				"global variable %s: only interface guards, error sentinels and literal tables may be global", name.Name))
		}
		if pos, ok := written[p.info.Defs[name]]; ok {
			found = append(found, t.at(pos, "global variable %s is written to, or its address is handed on", name.Name))
		}
	}
	return found
}

// isSentinel reports whether a variable is an error made once to be compared with.
func isSentinel(name string, value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok || !strings.HasPrefix(strings.ToLower(name), "err") {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && (pkg.Name == "errors" && sel.Sel.Name == "New" || pkg.Name == "fmt" && sel.Sel.Name == "Errorf")
}

// isTable reports whether a variable is a slice, array or map written out.
func (p *corePackage) isTable(name *ast.Ident, value ast.Expr) bool {
	lit, ok := value.(*ast.CompositeLit)
	if !ok {
		return false
	}
	switch lit.Type.(type) {
	case *ast.ArrayType, *ast.MapType:
		return true
	}
	obj := p.info.Defs[name]
	if obj == nil {
		return false
	}
	switch obj.Type().Underlying().(type) {
	case *types.Slice, *types.Array, *types.Map:
		return true
	}
	return false
}

// written returns the variables that some statement of the package writes to or
// takes the address of, and where.
func (p *corePackage) written() map[types.Object]token.Pos {
	places := map[types.Object]token.Pos{}
	mark := func(exprs ...ast.Expr) {
		for _, x := range exprs {
			if id := base(x); id != nil && p.info.Uses[id] != nil {
				places[p.info.Uses[id]] = x.Pos()
			}
		}
	}
	for _, s := range p.files {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				mark(n.Lhs...)
			case *ast.IncDecStmt:
				mark(n.X)
			case *ast.RangeStmt:
				mark(n.Key, n.Value)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					mark(n.X)
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && slices.Contains([]string{"clear", "copy", "delete"}, id.Name) {
					mark(n.Args[0])
				}
			}
			return true
		})
	}
	return places
}

// base returns the variable that an expression is a part of, nil for none.
func base(x ast.Expr) *ast.Ident {
	for {
		switch y := x.(type) {
		case *ast.Ident:
			return y
		case *ast.ParenExpr:
			x = y.X
		case *ast.SelectorExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.SliceExpr:
			x = y.X
		case *ast.StarExpr:
			x = y.X
		default:
			return nil
		}
	}
}

func TestNoConcurrencyInCore(t *testing.T) {
	report(t, checkConcurrency(repository(t)))
}

func TestNoGlobalRandomNumbersInCore(t *testing.T) {
	report(t, checkRandom(repository(t)))
}

func TestNoChangingGlobalsInCore(t *testing.T) {
	report(t, checkGlobals(repository(t)))
}

func TestConcurrencyCanFail(t *testing.T) {
	in := func(body string) map[string]string {
		return map[string]string{"softirq/a.go": "package softirq\nfunc f() {\n" + body + "\n}"}
	}
	runPlants(t, checkConcurrency, []plant{
		{"clean", in("a := -1; _ = a &^ 2"), nil},
		{"go", in("go f()"), []string{"softirq/a.go:3: go statement"}},
		{"channel", in("c := make(chan int); close(c)"), []string{"channel type"}},
		{"select", in("select {}"), []string{"select"}},
		{"send and receive", in("x.c <- 1\n<-x.c"), []string{"send", "receive"}},
		{"in a test", map[string]string{"sim/a_test.go": "package sim\nfunc f() { go f() }"}, nil},
		{"above the core", map[string]string{"scenarios/a.go": "package scenarios\nfunc f() { go f() }"}, nil},
		{"a parameter", map[string]string{"nic/driver/a.go": "package driver\nfunc f(<-chan int)"}, []string{"channel type"}},
	})
}

func TestGlobalRandomNumbersCanFail(t *testing.T) {
	in := func(body string) map[string]string {
		return map[string]string{"model/a.go": "package model\nimport r \"math/rand/v2\"\nfunc f() {\n" + body + "\n}"}
	}
	runPlants(t, checkRandom, []plant{
		{"own generator", in("var p r.PCG; x := r.New(r.NewPCG(1, 2)); x.IntN(3)"), nil},
		{"a draw", in("_ = r.IntN(3)"), []string{"model/a.go:4: rand.IntN"}},
		{"handed on", in("g := r.Shuffle\n_ = g"), []string{"rand.Shuffle"}},
		{"a local of that name", in("r := x{}; r.IntN(3)"), nil},
	})
}

func TestChangingGlobalsCanFail(t *testing.T) {
	in := func(text string) map[string]string {
		return map[string]string{
			"sim/a.go": "package sim\n" + text,
			"sim/b.go": "package sim\ntype names []string\ntype point struct{ x int }\n",
		}
	}
	runPlants(t, checkGlobals, []plant{
		{"guard", in("var _ I = (*T)(nil)"), nil},
		{"sentinels", in("var (\nErrStopped = errors.New(`x`)\nerrX = fmt.Errorf(`y`)\n)"), nil},
		{"tables", in("var a, b = []int{1}, map[int]string{}\nvar c = [...]int{1}\nvar d = names{`x`}"), nil},
		{"local names", in("var a = []int{1}\nfunc f() { a := []int{2}; a[0] = 3; b := a; b[0]++ }"), nil},
		{"reads", in("var a = []int{1}\nfunc f() int { x := a[0]; for range a { x++ }; return x + len(a) }"), nil},
		{"local variable", in("func f() { var n int; n++ }"), nil},
		{"counter", in("var n int"), []string{"sim/a.go:2: global variable n: only"}},
		{"struct", in("var p = point{1}"), []string{"variable p: only"}},
		{"pointer", in("var p = &point{1}"), []string{"variable p: only"}},
		{"call", in("var t = build()"), []string{"variable t: only"}},
		{"two from one call", in("var t, u = build()"), []string{"variable t: only", "variable u: only"}},
		{"no sentinel", in("var errs = list()\nvar stop = errors.New(`x`)"), []string{"errs", "stop"}},
		{"assigned", in("var a = []int{1}\nfunc f() { a = nil }"), []string{"sim/a.go:3: global variable a is written"}},
		{"element", in("var a = map[int]int{}\nfunc f() { a[1] = 2 }"), []string{"written"}},
		{"field", in("var a = []point{{1}}\nfunc f() { a[0].x++ }"), []string{"written"}},
		{"range", in("var a = []int{1}\nfunc f() { for a[0] = range 3 { } }"), []string{"written"}},
		{"address", in("var a = []point{{1}}\nfunc f() *point { return &a[0] }"), []string{"written"}},
		{"built in", in("var a = map[int]int{}\nfunc f() { delete(a, 1) }"), []string{"written"}},
		{"sentinel", in("var ErrX = errors.New(`x`)\nfunc f() { ErrX = nil }"), []string{"written"}},
		{"from the next file", map[string]string{
			"nic/a.go": "package nic\nvar a = []int{1}", "nic/b.go": "package nic\nfunc f() { a[0] = 2 }",
		}, []string{"nic/b.go:2: global variable a is written"}},
		{"above the core", map[string]string{"scenarios/a.go": "package scenarios\nvar n int"}, nil},
		{"in a test", map[string]string{"sim/a_test.go": "package sim\nvar update = flag.Bool(`update`, false, ``)"}, nil},
	})
}
