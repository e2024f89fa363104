package napisim_test

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file keeps the arrows between the packages; core_test.go keeps the rules for
// simulated code and house_test.go those for all code. The files are parsed, not
// listed by the go command, so that every build tag is seen and no answer comes
// from the test cache.

const module = "napisim"

// anywhere is the root of the tree: every directory lies within it.
const anywhere = "."

// A floor says what the packages in one directory may import.
type floor struct {
	dir  string   // holds for this directory and those below it; the longest match counts
	ours []string // directories of ours that may be imported, with everything below them ...
	not  []string // ... except these
	core bool     // simulated code: no clock, file, goroutine or changing global
}

// floors are the arrows of the architecture, from the bottom up. Two packages of
// one directory may see each other only where the directory is in its own list.
var floors = []floor{
	{dir: "sim", ours: []string{"sim"}, core: true},
	{dir: "model", ours: []string{"sim", "model"}, core: true},
	{dir: "nic", ours: []string{"sim", "model", "nic"}, not: []string{"nic/driver"}, core: true},
	{dir: "softirq/gro", ours: []string{"sim", "model", "softirq/gro", "softirq/stack"}, core: true},
	{dir: "softirq/stack", ours: []string{"sim", "model", "softirq/gro", "softirq/stack"}, core: true},
	{dir: "softirq", ours: []string{"sim", "model", "softirq"}, core: true},
	{dir: "nic/driver", ours: []string{"sim", "model", "softirq", "nic"}, core: true},
	{dir: "scenarios", ours: []string{"sim", "model", "softirq", "nic", "scenarios", "reports/result"}},
	{dir: "reports/result", ours: []string{"reports/result"}},
	{dir: "reports", ours: []string{"reports/result"}},
	{dir: "cmd/napisim", ours: []string{"sim", "model", "softirq", "nic", "scenarios", "reports", "cmd/napisim"}},
	{dir: "."}, // the root's tests are not asked
}

// A dependency is a module of others and the directories that may import it.
type dependency struct {
	path  string
	in    []string // non-test files
	tests []string // test files and generators; nil means the same as in
}

// dependencies is the whole list of what may be imported from others; the longest
// matching path counts.
var dependencies = []dependency{
	{path: "gonum.org/v1/gonum", in: []string{"reports", "cmd/napisim"}, tests: []string{anywhere}},
	{path: "gonum.org/v1/plot", in: []string{"reports/figure"}, tests: []string{"reports"}},
	{path: "gopkg.in/yaml.v3", in: []string{"scenarios"}},
	{path: "github.com/spf13/cobra", in: []string{"cmd/napisim"}},
	{path: "github.com/HdrHistogram/hdrhistogram-go", in: []string{"sim/metric", "reports/result", "scenarios"}},
	{path: "golang.org/x/perf", in: []string{"reports", "cmd/napisim"}, tests: []string{anywhere}},
	{path: "github.com/jedib0t/go-pretty/v6", in: []string{"reports/text", "cmd/napisim"}},
	{path: "github.com/jedib0t/go-pretty/v6/progress", in: []string{"cmd/napisim"}},
	{path: "golang.org/x/term", in: []string{"cmd/napisim"}},
	{path: "github.com/google/go-cmp", tests: []string{anywhere}},
	{path: "pgregory.net/rapid", tests: []string{anywhere}},
	{path: "github.com/rogpeppe/go-internal", tests: []string{anywhere}},
	{path: "github.com/google/jsonschema-go", tests: []string{anywhere}},
}

// notInCore lists packages of the standard library that simulated code must not
// import, and why. Its tests may.
var notInCore = map[string]string{
	"os":           "the core does no I/O",
	"os/exec":      "the core does no I/O",
	"os/signal":    "the core does no I/O",
	"syscall":      "the core does no I/O",
	"flag":         "configuration is data",
	"log":          "the core is silent; results carry warnings as data",
	"log/slog":     "the core is silent; results carry warnings as data",
	"time":         "time is sim.Time",
	"sync":         "exactly one piece of code runs at a time",
	"sync/atomic":  "exactly one piece of code runs at a time",
	"math/rand":    "random numbers come from the run's streams",
	"crypto/rand":  "random numbers come from the run's streams",
	"hash/maphash": "its seed differs from run to run",
	"net":          "the core knows no real network (net/netip is fine)",
	"net/http":     "the core knows no real network",
	"unsafe":       "layout differs between architectures",
}

// within reports whether a slash-separated path is dir or lies below it.
func within(name, dir string) bool {
	return dir == anywhere || name == dir || strings.HasPrefix(name, dir+"/")
}

func withinAny(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(name, dir) })
}

// floorOf returns the floor with the longest directory that holds dir, nil where
// none was planned.
func floorOf(dir string) *floor {
	var best *floor
	for i := range floors {
		f := &floors[i]
		if f.dir == anywhere && dir != anywhere || !within(dir, f.dir) {
			continue
		}
		if best == nil || len(f.dir) > len(best.dir) {
			best = f
		}
	}
	return best
}

// inCore reports whether a file is simulated code: below scenarios, no test.
func (s *source) inCore() bool {
	f := floorOf(s.dir)
	return f != nil && f.core && !s.test && !s.tool
}

// checkImports returns the imports that go against an arrow.
func checkImports(t *tree) []string {
	var found []string
	for _, s := range t.files {
		f := floorOf(s.dir)
		if f == nil {
			found = append(found, t.at(s.ast.Package, "no floor is planned for the directory %s", s.dir))
			continue
		}
		for _, spec := range s.ast.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the parser has complained
			}
			if why := forbidden(s, f, imp); why != "" {
				found = append(found, t.at(spec.Pos(), "%s must not import %s: %s", s.dir, imp, why))
			}
		}
	}
	return found
}

// forbidden returns why a file on a floor must not import a path, "" if it may.
func forbidden(s *source, f *floor, imp string) string {
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case imp == "C":
		return "the simulator is pure Go"
	case first == module:
		dir := strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")
		if s.dir == anywhere && s.test || dir == s.dir && s.test {
			return ""
		}
		if dir == "" || !withinAny(dir, f.ours) || withinAny(dir, f.not) {
			return "arrows go down only"
		}
	case strings.Contains(first, "."):
		return forbiddenDependency(s, imp)
	case s.inCore():
		return notInCore[imp]
	case imp == "math/rand":
		return "use math/rand/v2"
	}
	return ""
}

// forbiddenDependency is forbidden for the modules of others.
func forbiddenDependency(s *source, imp string) string {
	var best *dependency
	for i := range dependencies {
		d := &dependencies[i]
		if within(imp, d.path) && (best == nil || len(d.path) > len(best.path)) {
			best = d
		}
	}
	switch {
	case best == nil:
		return "it is not on the list of dependencies"
	case (s.test || s.tool) && best.tests != nil:
		if !withinAny(s.dir, best.tests) {
			return "its tests belong in " + strings.Join(best.tests, ", ")
		}
	case best.in == nil:
		return "it is for tests and generators"
	case !withinAny(s.dir, best.in):
		return "it belongs in " + strings.Join(best.in, ", ")
	}
	return ""
}

// top are the directories of the root, all of them and no others.
var top = []string{"cmd", "model", "nic", "reports", "scenarios", "sim", "softirq"}

// checkLayout returns the top-level directories that are missing or too many.
func checkLayout(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var found []string
	have := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		have[name] = e.IsDir()
		if e.IsDir() && !slices.Contains(top, name) && !notOurs(name) && name != "testdata" && name != "docs" {
			found = append(found, name+": not one of the top-level directories")
		}
	}
	for _, name := range top {
		if !have[name] {
			found = append(found, name+": top-level directory is missing")
		}
	}
	return found, nil
}

func TestArrows(t *testing.T) {
	report(t, checkImports(repository(t)))
}

func TestLayout(t *testing.T) {
	found, err := checkLayout(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	report(t, found)
}

// importing is the source of a package that imports the given paths.
func importing(pkg string, paths ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", pkg)
	for _, p := range paths {
		fmt.Fprintf(&b, "import _ %q\n", p)
	}
	return b.String()
}

func TestArrowsCanFail(t *testing.T) {
	const m = "napisim/"
	runPlants(t, checkImports, []plant{
		{"down is fine", map[string]string{
			"sim/a.go":               importing("sim", "iter", "napisim/sim/metric"),
			"model/tcp/a.go":         importing("tcp", m+"sim", m+"model", m+"model/unit"),
			"nic/a.go":               importing("nic", m+"sim", m+"model/link", "net/netip"),
			"softirq/a.go":           importing("softirq", m+"softirq/gro", m+"model/cpu"),
			"nic/driver/a.go":        importing("driver", m+"nic", m+"softirq"),
			"scenarios/a.go":         importing("scenarios", m+"nic/driver", m+"reports/result", "gopkg.in/yaml.v3", "os"),
			"reports/text/a.go":      importing("text", m+"reports/result", "github.com/jedib0t/go-pretty/v6/table"),
			"reports/result/a.go":    importing("result", m+"reports/result/quantity", "github.com/HdrHistogram/hdrhistogram-go"),
			"cmd/napisim/a.go":       importing("main", m+"scenarios", m+"reports/text", "github.com/spf13/cobra"),
			"sim/a_test.go":          importing("sim_test", m+"sim", "os", "time", "pgregory.net/rapid", "gonum.org/v1/gonum/stat"),
			"scenarios/gen.go":       "//go:build ignore\n\n" + importing("main", "github.com/google/jsonschema-go/jsonschema"),
			"a_test.go":              importing("napisim_test", m+"cmd/napisim"),
			".tools/a.go":            importing("x", "example.org/x"),
			"sim/testdata/broken.go": "not Go",
		}, nil},
		{"up", map[string]string{"sim/a.go": importing("sim", m+"model")}, []string{"sim/a.go:2: sim must not import napisim/model: arrows"}},
		{"up from model", map[string]string{"model/cpu/a.go": importing("cpu", m+"softirq")}, []string{"arrows"}},
		{"device to kernel", map[string]string{"nic/a.go": importing("nic", m+"softirq")}, []string{"arrows"}},
		{"kernel to device", map[string]string{"softirq/a.go": importing("softirq", m+"nic")}, []string{"arrows"}},
		{"kernel to driver", map[string]string{"softirq/a.go": importing("softirq", m+"nic/driver")}, []string{"arrows"}},
		{"device to driver", map[string]string{"nic/ring/a.go": importing("ring", m+"nic/driver")}, []string{"arrows"}},
		{"gro to softirq", map[string]string{"softirq/gro/a.go": importing("gro", m+"softirq")}, []string{"arrows"}},
		{"driver to scenarios", map[string]string{"nic/driver/a.go": importing("driver", m+"scenarios")}, []string{"arrows"}},
		{"in a test, too", map[string]string{"softirq/a_test.go": importing("softirq_test", m+"nic")}, []string{"arrows"}},
		{"scenarios to a report", map[string]string{"scenarios/a.go": importing("scenarios", m+"reports/text")}, []string{"arrows"}},
		{"scenarios to the command", map[string]string{"scenarios/a.go": importing("scenarios", m+"cmd/napisim")}, []string{"arrows"}},
		{"report to report", map[string]string{"reports/text/a.go": importing("text", m+"reports/compare")}, []string{"arrows"}},
		{"report to model", map[string]string{"reports/text/a.go": importing("text", m+"model/unit")}, []string{"arrows"}},
		{"result to model", map[string]string{"reports/result/a.go": importing("result", m+"sim/metric")}, []string{"arrows"}},
		{"to the root", map[string]string{"cmd/napisim/a.go": importing("main", "napisim")}, []string{"arrows"}},
		{"unplanned", map[string]string{"cmd/other/a.go": "package main", "util/a.go": "package util"}, []string{
			"directory cmd/other", "directory util",
		}},
		{"unlisted module", map[string]string{"cmd/napisim/a.go": importing("main", "example.org/x")}, []string{"not on the list"}},
		{"test module", map[string]string{"reports/text/a.go": importing("text", "github.com/google/go-cmp/cmp")}, []string{"for tests"}},
		{"module out of place", map[string]string{
			"nic/a.go":          importing("nic", "gopkg.in/yaml.v3"),
			"reports/text/a.go": importing("text", "github.com/jedib0t/go-pretty/v6/progress", "gonum.org/v1/plot"),
			"scenarios/a.go":    importing("scenarios", "gonum.org/v1/gonum/stat", "golang.org/x/term"),
			"sim/a_test.go":     importing("sim", "gopkg.in/yaml.v3", "gonum.org/v1/plot"),
		}, []string{
			"belongs in scenarios", "belongs in cmd/napisim", "belongs in reports/figure", "belongs in reports, cmd/napisim",
			"belongs in cmd/napisim", "belongs in scenarios", "tests belong in reports",
		}},
		{"old random numbers and cgo", map[string]string{"cmd/napisim/a.go": importing("main", "math/rand", "C")}, []string{"v2", "pure Go"}},
	})
	for imp, why := range notInCore {
		runPlants(t, checkImports, []plant{
			{imp + " in the core", map[string]string{"model/a.go": importing("model", imp)}, []string{why}},
		})
	}
}

func TestLayoutCanFail(t *testing.T) {
	files := map[string]string{
		"sim/a": "", "model/a": "", "nic/a": "", "softirq/a": "", "scenarios/a": "", "reports/a": "", "cmd/a": "",
		".ci/run": "", "bin/a": "", "docs/a.md": "", "testdata/a": "", "LICENSE": "",
	}
	check := func(want ...string) {
		t.Helper()
		found, err := checkLayout(planted(files))
		if err != nil {
			t.Fatal(err)
		}
		sameFindings(t, found, want)
	}
	check()
	files["pkg/a.go"] = ""
	check("pkg: not one of")
	delete(files, "sim/a")
	check("pkg: not one of", "sim: top-level directory is missing")
}
