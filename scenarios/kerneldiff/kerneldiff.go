// Package kerneldiff says in what two kernel presets differ: choices of behaviours with
// the changes that brought them, and settings with other defaults.
package kerneldiff

import (
	"slices"
	"strings"

	"napisim/scenarios/spec"
	"napisim/scenarios/spec/behaviours"
	"napisim/scenarios/strict"
)

// The parts of a scenario in which kernels differ.
const (
	BehavioursPath = "kernel.behaviours."
	SysctlPath     = "sysctl."
)

// A Difference is one thing in which two kernels differ.
type Difference struct {
	// Name is that of the behaviour or the setting, Path where a scenario chooses it.
	Name string `json:"name"`
	Path string `json:"path"`
	Doc  string `json:"doc"`
	// Functions of the kernel in which versions differ; none for a setting.
	Functions []string `json:"functions"`
	// From and To are the values in the two kernels; "" is a setting that the kernel
	// derives from others.
	From string `json:"from"`
	To   string `json:"to"`
	// Commits lie between the two, oldest first, as far as they are known. Undone says
	// that To is the older kernel, which does not have them yet.
	Commits []string `json:"commits"`
	Undone  bool     `json:"undone"`
	// Effects say what the changes do, in the order of the kernel's history.
	Effects []string `json:"effects"`
	// Does says what the kernel does with To.
	Does string `json:"does"`
}

// Commit writes the commits, or how little is known of them.
func (d Difference) Commit() string {
	commits := strings.Join(d.Commits, ", ")
	if commits != "" && d.Undone {
		return "without " + commits
	}
	return commits
}

// Effect writes the effects in one line.
func (d Difference) Effect() string {
	effects := strings.Join(d.Effects, " ")
	if effects != "" && d.Undone {
		return "Undone: " + effects
	}
	return effects
}

// Assign returns the assignments that put one of the two values into a scenario.
func (d Difference) Assign(value string) string { return d.Path + "=" + value }

// Between returns the differences of two presets, behaviours before settings, both by
// name. All is the history, oldest first, in which changes on the way are looked up.
func Between(from, to *spec.Preset, all []*spec.Preset) []Difference {
	found := []Difference{}
	for _, b := range behaviours.All() {
		if from.Behaviours[b.Name] != to.Behaviours[b.Name] {
			found = append(found, behaviour(b, from, to, all))
		}
	}
	root := spec.Describe()
	sysctl := slices.IndexFunc(root.Fields, func(f strict.Field) bool { return f.Key == "sysctl" })
	for _, f := range root.Fields[sysctl].Fields {
		a, b := Setting(from.Sysctl, f.Key), Setting(to.Sysctl, f.Key)
		if a != b {
			found = append(found, Difference{
				Name: f.Key, Path: SysctlPath + f.Key, Doc: f.Doc, From: a, To: b,
				Functions: []string{}, Commits: []string{}, Effects: []string{},
				Does: "Another default of the setting.",
			})
		}
	}
	return found
}

func behaviour(b behaviours.Behaviour, from, to *spec.Preset, all []*spec.Preset) Difference {
	d := Difference{
		Name: b.Name, Path: BehavioursPath + b.Name, Doc: b.Doc, Functions: b.Functions,
		From: from.Behaviours[b.Name], To: to.Behaviours[b.Name],
		Commits: []string{}, Effects: []string{},
	}
	older, newer := from, to
	if spec.CompareVersions(from.Version, to.Version) > 0 {
		older, newer, d.Undone = to, from, true
	}
	for _, name := range steps(b.Name, older, newer, all) {
		v := value(b, name)
		if v.Commit != "" && !slices.Contains(d.Commits, v.Commit) { // a stable release may have it early
			d.Commits = append(d.Commits, v.Commit)
		}
		if v.Effect != "" && !slices.Contains(d.Effects, v.Effect) {
			d.Effects = append(d.Effects, v.Effect)
		}
	}
	d.Does = value(b, d.To).Doc
	return d
}

// steps returns the values that a behaviour took after that of the older kernel, up to
// that of the newer one.
func steps(name string, older, newer *spec.Preset, all []*spec.Preset) []string {
	var taken []string
	last := older.Behaviours[name]
	take := func(p *spec.Preset) {
		if v := p.Behaviours[name]; v != last {
			taken, last = append(taken, v), v
		}
	}
	for _, p := range all {
		if spec.CompareVersions(older.Version, p.Version) < 0 && spec.CompareVersions(p.Version, newer.Version) < 0 {
			take(p)
		}
	}
	take(newer)
	return taken
}

func value(b behaviours.Behaviour, name string) behaviours.Value {
	i := slices.IndexFunc(b.Values, func(v behaviours.Value) bool { return v.Name == name })
	if i < 0 {
		return behaviours.Value{}
	}
	return b.Values[i]
}

// budgetUsecs is the setting that kernels derive from the tick rate.
const budgetUsecs = "net.core.netdev_budget_usecs"

// Setting writes a setting as an assignment takes it, "" for one that is derived.
func Setting(s spec.Sysctl, key string) string {
	if key == budgetUsecs && s.NetdevBudgetUsecs == 0 {
		return ""
	}
	n := strict.Tree(s).Get(key)
	if text, ok := n.Text(); ok {
		return text
	}
	if n == nil {
		return ""
	}
	var items []string
	for line := range strings.Lines(string(strict.Encode(n))) {
		if item := strings.TrimSpace(strings.TrimLeft(line, "- ")); item != "" {
			items = append(items, strings.Trim(item, "[]"))
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// History returns the presets of the library, oldest first.
func History(l spec.Loader) ([]*spec.Preset, error) {
	entries, err := l.Presets()
	if err != nil {
		return nil, err
	}
	all := make([]*spec.Preset, len(entries))
	for i, e := range entries {
		if all[i], err = l.Preset(e.Name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Having writes which presets have a value, as ranges of their order: "v4.8, v6.5-v6.18".
func Having(presets []*spec.Preset, behaviour, value string) string {
	var ranges []string
	for i := 0; i < len(presets); i++ {
		first := i
		for i < len(presets) && presets[i].Behaviours[behaviour] == value {
			i++
		}
		switch i - first {
		case 0:
		case 1:
			ranges = append(ranges, presets[first].Name)
		default:
			ranges = append(ranges, presets[first].Name+"-"+presets[i-1].Name)
		}
	}
	return strings.Join(ranges, ", ")
}
