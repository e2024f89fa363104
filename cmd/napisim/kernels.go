package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/reports/text"
	"napisim/scenarios/kerneldiff"
	"napisim/scenarios/spec"
	"napisim/scenarios/spec/behaviours"
)

// A prose collects labelled text for people, wrapped at words.
type prose struct {
	strings.Builder
	width int
}

func (a *app) prose() *prose { return &prose{width: max(a.style().Width, 40)} }

// line writes text behind a margin.
func (p *prose) line(margin, words string) { p.hang(margin, margin, words) }

// labelled writes a label and text beside it, nothing if there is no text.
func (p *prose) labelled(margin, label, words string) {
	if words != "" {
		p.hang(fmt.Sprintf("%s%-10s ", margin, label), margin+strings.Repeat(" ", 11), words)
	}
}

// hang writes text with one margin before its first line and another, which is not
// shorter, before the others.
func (p *prose) hang(first, others, words string) {
	for i, line := range strings.Split(pretty.WrapSoft(words, max(p.width-len(others), 20)), "\n") {
		margin := others
		if i == 0 {
			margin = first
		}
		p.WriteString(strings.TrimRight(margin+line, " ") + "\n")
	}
}

// explainBehaviour tells what a behaviour is and what each of its values does.
func (a *app) explainBehaviour(b behaviours.Behaviour) (string, error) {
	presets, err := kerneldiff.History(a.loader)
	if err != nil {
		return "", err
	}
	p := a.prose()
	p.line("", kerneldiff.BehavioursPath+b.Name+": a behaviour of kernels")
	p.line("  ", b.Doc)
	p.labelled("  ", "functions", strings.Join(b.Functions, ", "))
	for _, v := range b.Values {
		having := kerneldiff.Having(presets, b.Name, v.Name)
		if having == "" {
			having = "none"
		}
		p.line("", "")
		p.line("  ", v.Name)
		p.line("    ", v.Doc)
		p.labelled("    ", "releases", v.Versions)
		p.labelled("    ", "presets", having)
		p.labelled("    ", "commit", v.Commit)
		p.labelled("    ", "effect", v.Effect)
	}
	return p.String(), nil
}

// explainPreset tells what a kernel preset changes, and where all its choices come from.
func (a *app) explainPreset(name string) (string, error) {
	preset, err := a.loader.Preset(name)
	if err != nil {
		return "", err
	}
	line, err := a.loader.Lineage(name)
	if err != nil {
		return "", err
	}
	history, err := kerneldiff.History(a.loader)
	if err != nil {
		return "", err
	}
	p := a.prose()
	p.line("", preset.Name+": a kernel preset")
	p.line("  ", preset.Summary)
	p.labelled("  ", "linux", preset.Version)
	p.labelled("  ", "base", line.Base)
	if line.Under != nil {
		changes := kerneldiff.Between(line.Under, preset, history)
		p.line("", "")
		p.line("  ", changesTitle(line.Base, len(changes)))
		for _, d := range changes {
			p.difference("    ", d)
		}
	}
	t := text.Table{Columns: []text.Column{{Name: "choice"}, {Name: "value"}, {Name: "from"}}}
	for _, b := range behaviours.All() {
		t.Rows = append(t.Rows, []string{b.Name, preset.Behaviours[b.Name], fromPreset(line.Files["behaviours."+b.Name])})
	}
	for _, path := range slices.Sorted(maps.Keys(line.Files)) {
		key, ok := strings.CutPrefix(path, kerneldiff.SysctlPath)
		if parent := key[:max(strings.LastIndexByte(key, '.'), 0)]; !ok || line.Files[kerneldiff.SysctlPath+parent] != "" {
			continue // no setting, or a number of one that is written whole
		}
		t.Rows = append(t.Rows, []string{key, orDerived(kerneldiff.Setting(preset.Sysctl, key)), fromPreset(line.Files[path])})
	}
	p.line("", "")
	err = t.Write(p, text.FormatText, text.Options{Width: p.width})
	return p.String(), err
}

func changesTitle(base string, changes int) string {
	if changes == 0 {
		return "nothing that the model knows differs from " + base
	}
	return "changed against " + base
}

// fromPreset names the preset that a file holds.
func fromPreset(file string) string {
	if of, ok := strings.CutPrefix(file, "napisim:kernels/"); ok {
		return strings.TrimSuffix(of, path.Ext(of))
	}
	return file
}

// derived stands for a setting that the kernel derives from others.
const derived = "(derived)"

func orDerived(value string) string { return cmp.Or(value, derived) }

// difference writes one difference of two kernels.
func (p *prose) difference(margin string, d kerneldiff.Difference) {
	p.line(margin, fmt.Sprintf("%s: %s -> %s", d.Name, orDerived(d.From), orDerived(d.To)))
	inner := margin + "  "
	p.labelled(inner, "functions", strings.Join(d.Functions, ", "))
	p.labelled(inner, "commit", d.Commit())
	p.labelled(inner, "now", d.Does)
	p.labelled(inner, "effect", d.Effect())
}

func (a *app) diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff-kernels FROM TO",
		Short: "Say in what two kernel presets differ",
		Long: "Say in which behaviours and in the defaults of which settings two kernel presets differ:\n" +
			"the value in each, the functions of the kernel, the commits between them, and what the\n" +
			"change does. FROM and TO are names of the library (napisim list kernels) or files.",
		Example:           "  napisim diff-kernels v6.3 v6.4\n  napisim diff-kernels v5.4 v6.12 -o md",
		Args:              arguments(2, 2, "two kernels, FROM and TO"),
		ValidArgsFunction: a.completeKernels,
	}
	format := outputFlag(cmd, "text", "json", "md", "csv")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, to, found, err := a.differences(cmd, args[0], args[1])
		if err != nil {
			return err
		}
		return a.writeDifferences(from, to, found, format)
	}
	return cmd
}

// differences loads two presets, which shall not be the same, and compares them.
func (a *app) differences(cmd *cobra.Command, one, other string) (from, to *spec.Preset, found []kerneldiff.Difference, err error) {
	if one == other {
		return nil, nil, nil, usage(cmd, "%s is given twice: a kernel does not differ from itself", one)
	}
	from, err = a.loader.Preset(one)
	if err != nil {
		return nil, nil, nil, err
	}
	to, err = a.loader.Preset(other)
	if err != nil {
		return nil, nil, nil, err
	}
	history, err := kerneldiff.History(a.loader)
	if err != nil {
		return nil, nil, nil, err
	}
	return from, to, kerneldiff.Between(from, to, history), nil
}

// A kernelDiff is the JSON of diff-kernels.
type kernelDiff struct {
	From        kernelName              `json:"from"`
	To          kernelName              `json:"to"`
	Differences []kerneldiff.Difference `json:"differences"`
}

type kernelName struct {
	Name  string `json:"name"`
	Linux string `json:"linux"`
}

func (a *app) writeDifferences(from, to *spec.Preset, found []kerneldiff.Difference, format *choice) error {
	switch format.value {
	case "json":
		return writeJSON(&a.out, kernelDiff{kernelName{from.Name, from.Version}, kernelName{to.Name, to.Version}, found})
	case "text":
		a.out.WriteString(a.differencesText(from, to, found))
		return nil
	}
	f, err := text.ParseFormat(format.value)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	t := text.Table{}
	for _, name := range []string{"name", from.Name, to.Name, "functions", "commit", "effect"} {
		t.Columns = append(t.Columns, text.Column{Name: name})
	}
	for _, d := range found {
		t.Rows = append(t.Rows, []string{
			d.Name, orDerived(d.From), orDerived(d.To), strings.Join(d.Functions, ", "), d.Commit(), cmp.Or(d.Effect(), d.Does),
		})
	}
	return t.Write(&a.out, f, text.Options{})
}

func (a *app) differencesText(from, to *spec.Preset, found []kerneldiff.Difference) string {
	p := a.prose()
	names := fmt.Sprintf("%s (Linux %s) -> %s (Linux %s)", from.Name, from.Version, to.Name, to.Version)
	if len(found) == 0 {
		p.line("", names+": nothing that the model knows differs")
		return p.String()
	}
	p.line("", names+": "+count(len(found), "difference"))
	for _, d := range found {
		p.line("", "")
		p.difference("", d)
	}
	p.line("", "")
	p.line("", fmt.Sprintf("napisim bisect SCENARIO --good %s --bad %s --metric goodput tells which of them moves a metric.", from.Name, to.Name))
	return p.String()
}

// writeJSON writes a document as all commands do.
func writeJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}
