package recording

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"napisim/scenarios/recording/ftrace"
)

// A metaFile is meta.yaml: values by key, with their lines.
type metaFile struct {
	path string
	keys map[string]*yaml.Node
	err  error // the first fault
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)`)

// openMeta reads the mapping of meta.yaml.
func openMeta(file string) (*metaFile, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		line := 1
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
			err = errors.New(m[2])
		}
		return nil, &ftrace.Error{File: file, Line: line, Err: err}
	}
	m := &metaFile{path: file, keys: map[string]*yaml.Node{}}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, &ftrace.Error{File: file, Line: 1, Err: errors.New("want keys with values")}
	}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		if m.keys[pairs[i].Value] != nil {
			return nil, &ftrace.Error{File: file, Line: pairs[i].Line, Err: fmt.Errorf("%s is given twice", pairs[i].Value)}
		}
		m.keys[pairs[i].Value] = pairs[i+1]
	}
	return m, nil
}

// fail keeps the first fault.
func (m *metaFile) fail(key, format string, args ...any) {
	if m.err != nil {
		return
	}
	line := 1
	if n := m.keys[key]; n != nil {
		line = n.Line
	}
	m.err = &ftrace.Error{File: m.path, Line: line, Err: fmt.Errorf(key+": "+format, args...)}
}

// text returns a value as text without spaces around it, "" if the key is missing.
func (m *metaFile) text(key string) string {
	n := m.keys[key]
	switch {
	case n == nil:
		return ""
	case n.Kind == yaml.SequenceNode:
		var words []string
		for _, c := range n.Content {
			words = append(words, c.Value)
		}
		return strings.Join(words, ",")
	case n.Kind != yaml.ScalarNode:
		m.fail(key, "want text")
	}
	return strings.TrimSpace(n.Value)
}

// number returns a value from least up; 0 if the key is missing or empty.
func (m *metaFile) number(key string, least int) int {
	s := m.text(key)
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least {
		m.fail(key, "want a number from %d, not %q", least, s)
		return 0
	}
	return n
}

// readMeta reads meta.yaml.
func (r *Recording) readMeta(file string) error {
	m, err := openMeta(file)
	if err != nil {
		return err
	}
	if id := m.text("run_id"); id != "" {
		r.ID = id
	}
	r.Description = m.text("description")
	r.Kernel = m.kernel()
	r.HZ = m.number("hz", 1)
	r.CPUs = m.number("cpus", 1)
	r.Topology = m.text("topology")
	if !slices.Contains([]string{"nic", "veth", "tun", ""}, r.Topology) {
		m.fail("topology", "want nic, veth or tun, not %q", r.Topology)
	}
	r.NIC = parseNIC(m.text("nic"))
	if r.Topology == "nic" && r.NIC.Model == "" {
		m.fail("nic", "topology nic needs the model of the NIC")
	}
	r.VirtualTime = strings.Contains(m.text("qemu_args"), "-icount") || strings.Contains(m.text("clock"), "icount")
	r.Offered = m.number("offered_packets", 0)
	r.Sender, r.Receiver = parseReport(m.text("sender")), parseReport(m.text("received"))
	r.Rate, err = ParseRate(m.text("rate"))
	if err != nil {
		m.fail("rate", "%v", err)
	}
	if r.Rate.Burst == 0 {
		r.Rate.Burst = burstOf(r.Description)
		r.Rate.space()
	}
	return m.err
}

var (
	release  = regexp.MustCompile(`\b((\d+)\.(\d+)(?:\.\d+)?[-.+~\w]*)`)
	upstream = regexp.MustCompile(`\bDebian (\d+\.\d+\.\d+)`)
)

// kernel reads the line of uname -a, or a release alone.
func (m *metaFile) kernel() Kernel {
	var k Kernel
	line := m.text("kernel")
	if m.keys["kernel"] == nil {
		m.fail("kernel", "is missing: want the output of uname -a or a release")
		return k
	}
	found := release.FindStringSubmatch(line)
	if found == nil {
		m.fail("kernel", "want the output of uname -a or a release, not %q", line)
		return k
	}
	k.Release = found[1]
	k.Preset = "v" + found[2] + "." + found[3]
	k.Version, _, _ = strings.Cut(found[1], "-")
	k.Version, _, _ = strings.Cut(k.Version, "+")
	if u := upstream.FindStringSubmatch(line); u != nil {
		k.Version = u[1]
		n := strings.SplitN(u[1], ".", 3)
		k.Preset = "v" + n[0] + "." + n[1]
	}
	k.RT = strings.Contains(line, "PREEMPT_RT") || strings.Contains(m.text("preempt_config"), "CONFIG_PREEMPT_RT")
	active := m.text("preempt_active")
	if open, end := strings.IndexByte(active, '('), strings.IndexByte(active, ')'); open >= 0 && end > open {
		k.Preempt = active[open+1 : end]
	}
	return k
}

// parseNIC reads MODEL,OPTION=VALUE,...
func parseNIC(s string) NIC {
	words := strings.Split(strings.TrimSpace(s), ",")
	n := NIC{Model: strings.TrimSpace(words[0])}
	for _, w := range words[1:] {
		if key, value, ok := strings.Cut(strings.TrimSpace(w), "="); ok {
			if n.Options == nil {
				n.Options = map[string]string{}
			}
			n.Options[key] = value
		}
	}
	return n
}

// parseReport reads "REPORT role=ROLE key=value ..."; of several it takes the first.
func parseReport(s string) Report {
	s, _, _ = strings.Cut(s, ";REPORT")
	var p Report
	for w := range strings.FieldsSeq(s) {
		key, value, ok := strings.Cut(w, "=")
		switch {
		case !ok:
		case key == "role":
			p.Role = value
		default:
			if p.Fields == nil {
				p.Fields = map[string]string{}
			}
			p.Fields[key] = value
		}
	}
	return p
}

// Int returns a field of a report as a number and whether it is there.
func (p Report) Int(key string) (int64, bool) {
	n, err := strconv.ParseInt(p.Fields[key], 10, 64)
	return n, err == nil
}
