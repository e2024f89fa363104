package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"napisim/scenarios/recording/ftrace"
)

// A Recording is one run of a real machine.
type Recording struct {
	ID          string // run_id of meta.yaml, else the name of the directory or file
	Path        string // of the directory or file
	Description string
	Kernel      Kernel
	HZ          int    // ticks per second, 0 if unknown
	CPUs        int    // 0 if unknown
	Topology    string // nic (two NICs on one wire), veth, tun; "" if unknown
	NIC         NIC    // of topology nic
	VirtualTime bool   // the machine's time counts instructions: devices and memory take none
	Rate        Rate
	Offered     int    // packets that the sender was told to send, 0 if unknown
	Sender      Report // of the tool that sent
	Receiver    Report // of the tool that received

	Sysctls map[string]string // by name, net.core.netdev_budget and so on
	Devices []Device          // sender first, receiver last; only one with topology tun
	IRQs    []IRQ             // of network devices, by number

	Softnet    []Softnet        // change of softnet_stat over the run, by CPU
	Softirqs   map[string]int64 // change of /proc/softirqs, by name, all CPUs
	Interrupts map[string]int64 // change of /proc/interrupts, by action or letters, all CPUs

	Events     []ftrace.Event
	EventNames map[string]int // how often each event occurs
	Dropped    int            // events left out when the recording was trimmed
	Lost       int            // events the kernel lost; -1 if it does not say how many
	Kprobes    bool           // events that are no tracepoints of the kernel were recorded
	Warnings   []string       // what is missing, in the order of the files
}

// A Kernel says which Linux ran.
type Kernel struct {
	Release string // uname -r
	Version string // of the upstream tree, "6.1.192"; Release's first three numbers if that is not named
	Preset  string // "v6.1": the name of a kernel preset, which may not exist
	RT      bool   // built with PREEMPT_RT
	Preempt string // active preemption model: none, voluntary, full; "" if unknown
}

// A NIC is a model with the options it was created with.
type NIC struct {
	Model   string // e1000, e1000e, virtio-net-pci
	Options map[string]string
}

// Mitigation reports whether the device spaces its interrupts.
func (n NIC) Mitigation() bool { return n.Options["mitigation"] != "off" }

// A Report is what a traffic tool printed at its end.
type Report struct {
	Role   string            // udprecv, tcpsend, pktgen ..., "" if there is none
	Fields map[string]string // key=value
}

// trimmed is the event that stands for events left out: count=N, and NAME=N for each.
const trimmed = "napisim_dropped"

// Load reads a recording from a directory, or from the file of a trace. A file named
// trace.txt or trace.txt.gz with a meta.yaml beside it stands for its directory.
func Load(path string) (*Recording, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	dir := path
	if !info.IsDir() {
		dir = filepath.Dir(path)
		if base := filepath.Base(path); !strings.HasPrefix(base, "trace.txt") || !exists(filepath.Join(dir, "meta.yaml")) {
			return loadTrace(path)
		}
	}
	r := &Recording{ID: filepath.Base(dir), Path: dir}
	if err := r.readMeta(filepath.Join(dir, "meta.yaml")); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name string
		read func(string) error
	}{
		{"sysctls.txt", r.readSysctls},
		{"ethtool.txt", r.readEthtool},
		{"softnet_stat.before", func(f string) error { return r.readSoftnet(f, -1) }},
		{"softnet_stat.after", func(f string) error { return r.readSoftnet(f, 1) }},
		{"softirqs.before", func(f string) error { return r.readSoftirqs(f, -1) }},
		{"softirqs.after", func(f string) error { return r.readSoftirqs(f, 1) }},
		{"interrupts.before", func(f string) error { return r.readInterrupts(f, -1) }},
		{"interrupts.after", func(f string) error { return r.readInterrupts(f, 1) }},
	} {
		file := filepath.Join(dir, part.name)
		err := part.read(file)
		if errors.Is(err, fs.ErrNotExist) {
			r.Warnings = append(r.Warnings, part.name+" is missing")
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	trace := filepath.Join(dir, "trace.txt.gz")
	if !exists(trace) {
		trace = filepath.Join(dir, "trace.txt")
	}
	if !exists(trace) {
		return nil, fmt.Errorf("%s: no trace.txt.gz and no trace.txt", dir)
	}
	return r, r.readTrace(trace)
}

// loadTrace reads a trace alone.
func loadTrace(file string) (*Recording, error) {
	id := filepath.Base(file)
	for _, ext := range []string{".gz", ".txt"} {
		id = strings.TrimSuffix(id, ext)
	}
	r := &Recording{ID: id, Path: file, Warnings: []string{"no meta.yaml: kernel, HZ and machine are unknown"}}
	return r, r.readTrace(file)
}

// exists reports whether there is such a file.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// readTrace reads the events and what they say about the machine.
func (r *Recording) readTrace(file string) error {
	events, err := ftrace.ReadFile(file)
	if err != nil {
		return err
	}
	r.EventNames = map[string]int{}
	cpus := 0
	r.Events = make([]ftrace.Event, 0, len(events))
	for i := range events {
		e := &events[i]
		cpus = max(cpus, e.CPU+1)
		switch e.Name {
		case ftrace.Lost:
			n := 0
			if _, err := fmt.Sscan(e.Payload, &n); err != nil || n < 0 || r.Lost < 0 {
				r.Lost = -1
			} else {
				r.Lost += n
			}
		case trimmed:
			for w := range strings.FieldsSeq(e.Payload) {
				name, _, _ := strings.Cut(w, "=")
				n, _ := e.Int(name)
				if name == "count" {
					r.Dropped += int(n)
				} else {
					r.EventNames[name] += int(n)
				}
			}
			r.Events = append(r.Events, *e)
			continue
		}
		r.EventNames[e.Name]++
		r.Events = append(r.Events, *e)
	}
	if len(events) == 0 {
		return &ftrace.Error{File: file, Line: 1, Err: errors.New("no event in the trace")}
	}
	if r.CPUs == 0 {
		r.CPUs = cpus
	}
	for name := range r.EventNames {
		if kprobes[name] {
			r.Kprobes = true
		}
	}
	r.devicesFromTrace()
	return nil
}

// kprobes are the probes of functions that recordings use.
var kprobes = map[string]bool{
	"napi_complete_done": true, "napi_complete_done_ret": true, "napi_schedule_": true,
	"napi_schedule_prep_ret": true, "net_rx_action_entry": true, "net_rx_action_exit": true,
	"busy_poll_stop": true, "napi_busy_loop": true, "process_backlog": true, "process_backlog_ret": true,
}

// devicesFromTrace adds the network interrupts and devices that only the trace knows.
func (r *Recording) devicesFromTrace() {
	if len(r.Devices) == 0 {
		r.guessDevices()
	}
	seen := map[int]bool{}
	for _, q := range r.IRQs {
		seen[q.Number] = true
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.Name != "irq_handler_entry" {
			continue
		}
		n, _ := e.Int("irq")
		if name, _ := e.Field("name"); name != "" && !seen[int(n)] {
			seen[int(n)] = true
			r.IRQs = append(r.IRQs, IRQ{Number: int(n), Name: name})
		}
	}
	slices.SortFunc(r.IRQs, func(a, b IRQ) int { return a.Number - b.Number })
	r.nameIRQs()
}

// guessDevices finds the devices of a trace alone: the one that hands most packets to
// the stack is the receiver.
func (r *Recording) guessDevices() {
	count := map[string]int{}
	var names []string
	for i := range r.Events {
		e := &r.Events[i]
		dev := ""
		n := 1
		switch e.Name {
		case "netif_receive_skb", "netif_rx", "napi_gro_receive_entry", "napi_gro_frags_entry":
			dev, _ = e.Field("dev")
		case "net_dev_xmit":
			dev, _ = e.Field("dev")
			n = 0
		case "napi_poll":
			p, _ := e.Poll()
			dev, n = p.Dev, max(p.Work, 0)
		}
		if dev == "" || dev == "(no_device)" {
			continue
		}
		if _, have := count[dev]; !have {
			names = append(names, dev)
		}
		count[dev] += n
	}
	slices.SortStableFunc(names, func(a, b string) int {
		if d := count[a] - count[b]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		r.Devices = append(r.Devices, Device{Name: name})
	}
}

// Receiver device: the last of Devices, nil if there is none.
func (r *Recording) receiver() *Device {
	if len(r.Devices) == 0 {
		return nil
	}
	return &r.Devices[len(r.Devices)-1]
}

// RxDevice returns the name of the device that receives, "" if it is unknown.
func (r *Recording) RxDevice() string {
	if d := r.receiver(); d != nil {
		return d.Name
	}
	return ""
}

// TxDevice returns the name of the device that sends, "" if there is none or it is unknown.
func (r *Recording) TxDevice() string {
	if len(r.Devices) < 2 {
		return ""
	}
	return r.Devices[0].Name
}

// DeviceOf returns which device and queue an interrupt's action name belongs to; queue
// is "rx", "tx", or "" where one vector serves both or something else.
func (r *Recording) DeviceOf(action string) (dev, queue string) {
	for i := range r.IRQs {
		if r.IRQs[i].Name == action {
			return r.IRQs[i].Dev, r.IRQs[i].Queue
		}
	}
	return "", ""
}
