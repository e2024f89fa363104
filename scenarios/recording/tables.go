package recording

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"napisim/scenarios/recording/ftrace"
)

// A Device is a network device with its settings during the run.
type Device struct {
	Name            string
	Driver          string // ethtool -i
	GROFlushTimeout int64  // ns
	DeferHardIRQs   int    // napi_defer_hard_irqs
	Threaded        bool
	TxQueueLen, MTU int
	RPS             []uint64         // rps_cpus of each receive queue
	Coalesce        map[string]int64 // ethtool -c: rx-usecs and so on; n/a left out
	RingRX, RingTX  int              // descriptors; 0 if the device does not say
	Features        map[string]bool  // ethtool -k, long names
}

// An IRQ is a line of a network device.
type IRQ struct {
	Number int
	Name   string // action in /proc/interrupts
	Dev    string // device, "" if it is none of the recording's
	Queue  string // rx, tx, or "" if the vector serves both or something else
}

// Softnet is one line of /proc/net/softnet_stat.
type Softnet struct {
	CPU                                                             int
	Processed, Dropped, TimeSqueeze, ReceivedRPS, FlowLimit, Queued int64
}

// eachLine calls f for every line of a file; its errors get file and line.
func eachLine(file string, f func(line string) error) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // opened for reading
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	n := 0
	for s.Scan() {
		n++
		if err := f(s.Text()); err != nil {
			return &ftrace.Error{File: file, Line: n, Err: err}
		}
	}
	if err := s.Err(); err != nil {
		return &ftrace.Error{File: file, Line: n + 1, Err: err}
	}
	return nil
}

// device returns the device of a name, adding it behind the others if it is new.
func (r *Recording) device(name string) *Device {
	for i := range r.Devices {
		if r.Devices[i].Name == name {
			return &r.Devices[i]
		}
	}
	r.Devices = append(r.Devices, Device{Name: name})
	return &r.Devices[len(r.Devices)-1]
}

var (
	deviceSetting = regexp.MustCompile(`^([^ .]+)\.(gro_flush_timeout|napi_defer_hard_irqs|threaded|tx_queue_len|mtu)$`)
	rpsSetting    = regexp.MustCompile(`^/sys/class/net/([^/]+)/queues/rx-\d+/rps_cpus$`)
)

// readSysctls reads "name = value" lines: sysctls, settings of devices as
// DEVICE.gro_flush_timeout, RPS masks by their path, and affinities of interrupts.
func (r *Recording) readSysctls(file string) error {
	r.Sysctls = map[string]string{}
	return eachLine(file, func(line string) error {
		name, value, ok := strings.Cut(line, " =")
		value = strings.TrimSpace(value)
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "irq "):
			return nil
		case !ok:
			return fmt.Errorf("want NAME = VALUE, not %q", line)
		}
		if m := deviceSetting.FindStringSubmatch(name); m != nil {
			if value == "" {
				return nil // an older kernel does not have this setting
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return fmt.Errorf("%s: want a number, not %q", name, value)
			}
			r.device(m[1]).set(m[2], n)
			return nil
		}
		if m := rpsSetting.FindStringSubmatch(name); m != nil {
			mask, err := strconv.ParseUint(strings.ReplaceAll(value, ",", ""), 16, 64)
			if err != nil {
				return fmt.Errorf("%s: want a CPU mask, not %q", name, value)
			}
			d := r.device(m[1])
			d.RPS = append(d.RPS, mask)
			return nil
		}
		r.Sysctls[name] = value
		return nil
	})
}

// set stores one setting of sysfs.
func (d *Device) set(name string, n int64) {
	switch name {
	case "gro_flush_timeout":
		d.GROFlushTimeout = n
	case "napi_defer_hard_irqs":
		d.DeferHardIRQs = int(n)
	case "threaded":
		d.Threaded = n != 0
	case "tx_queue_len":
		d.TxQueueLen = int(n)
	case "mtu":
		d.MTU = int(n)
	}
}

// Sysctl returns a sysctl as a number, or instead if it is missing or no number.
func (r *Recording) Sysctl(name string, instead int64) int64 {
	if n, err := strconv.ParseInt(r.Sysctls[name], 10, 64); err == nil {
		return n
	}
	return instead
}

var ethtoolPart = regexp.MustCompile(`^== ethtool -(\w) (\S+)$`)

// readEthtool reads the outputs of ethtool -i, -c, -g and -k, each below "== ethtool -X DEVICE".
func (r *Recording) readEthtool(file string) error {
	var d *Device
	part, current := "", false
	var order []string
	err := eachLine(file, func(line string) error {
		if m := ethtoolPart.FindStringSubmatch(line); m != nil {
			part, d, current = m[1], r.device(m[2]), false
			if !slices.Contains(order, m[2]) {
				order = append(order, m[2])
			}
			return nil
		}
		if d == nil {
			if strings.TrimSpace(line) == "" {
				return nil
			}
			return fmt.Errorf("want \"== ethtool -X DEVICE\" first, not %q", line)
		}
		current = current || strings.HasPrefix(line, "Current hardware settings")
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok {
			d.ethtool(part, name, strings.TrimSpace(value), current)
		}
		return nil
	})
	// The order of the outputs is sender, receiver.
	slices.SortStableFunc(r.Devices, func(a, b Device) int {
		return slices.Index(order, a.Name) - slices.Index(order, b.Name)
	})
	return err
}

// ethtool stores one line of an output; lines without meaning here are skipped.
func (d *Device) ethtool(part, name, value string, current bool) {
	n, err := strconv.ParseInt(value, 10, 64)
	switch part {
	case "i":
		if name == "driver" {
			d.Driver = value
		}
	case "c":
		if err == nil {
			if d.Coalesce == nil {
				d.Coalesce = map[string]int64{}
			}
			d.Coalesce[name] = n
		}
	case "g":
		switch {
		case err != nil || !current:
		case name == "RX":
			d.RingRX = int(n)
		case name == "TX":
			d.RingTX = int(n)
		}
	case "k":
		state, _, _ := strings.Cut(value, " ")
		if state != "on" && state != "off" {
			return
		}
		if d.Features == nil {
			d.Features = map[string]bool{}
		}
		d.Features[name] = state == "on"
	}
}

// readSoftnet adds sign times the counters of a softnet_stat file.
func (r *Recording) readSoftnet(file string, sign int64) error {
	cpu := -1
	return eachLine(file, func(line string) error {
		words := strings.Fields(line)
		if len(words) == 0 {
			return nil
		}
		if len(words) < 9 {
			return fmt.Errorf("want at least 9 columns, found %d", len(words))
		}
		n := make([]int64, 15)
		for i, w := range words[:min(len(words), len(n))] {
			v, err := strconv.ParseInt(w, 16, 64)
			if err != nil {
				return fmt.Errorf("column %d: want a hexadecimal number, not %q", i+1, w)
			}
			n[i] = v
		}
		cpu++
		if len(words) >= 13 {
			cpu = int(n[12]) // offline CPUs have no line
		}
		i := slices.IndexFunc(r.Softnet, func(s Softnet) bool { return s.CPU == cpu })
		if i < 0 {
			i = len(r.Softnet)
			r.Softnet = append(r.Softnet, Softnet{CPU: cpu})
		}
		s := &r.Softnet[i]
		s.Processed += sign * n[0]
		s.Dropped += sign * n[1]
		s.TimeSqueeze += sign * n[2]
		s.ReceivedRPS += sign * n[9]
		s.FlowLimit += sign * n[10]
		s.Queued += sign * n[11]
		return nil
	})
}

// readSoftirqs adds sign times the counters of /proc/softirqs.
func (r *Recording) readSoftirqs(file string, sign int64) error {
	if r.Softirqs == nil {
		r.Softirqs = map[string]int64{}
	}
	return eachLine(file, func(line string) error {
		name, counts, ok := strings.Cut(line, ":")
		if !ok {
			return nil // the header
		}
		for w := range strings.FieldsSeq(counts) {
			n, err := strconv.ParseInt(w, 10, 64)
			if err != nil {
				return fmt.Errorf("%s: want a number, not %q", strings.TrimSpace(name), w)
			}
			r.Softirqs[strings.TrimSpace(name)] += sign * n
		}
		return nil
	})
}

// readInterrupts adds sign times the counters of /proc/interrupts and, for the file
// after the run, takes the lines of network devices.
func (r *Recording) readInterrupts(file string, sign int64) error {
	if r.Interrupts == nil {
		r.Interrupts = map[string]int64{}
	}
	cpus := 0
	return eachLine(file, func(line string) error {
		if cpus == 0 {
			cpus = strings.Count(line, "CPU")
			if cpus == 0 {
				return fmt.Errorf("want the header with CPU0 first, not %q", line)
			}
			return nil
		}
		name, rest, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("want IRQ: COUNTS ..., not %q", line)
		}
		name = strings.TrimSpace(name)
		words := strings.Fields(rest)
		sum := int64(0)
		i := 0
		for ; i < cpus && i < len(words); i++ {
			n, err := strconv.ParseInt(words[i], 10, 64)
			if err != nil {
				return fmt.Errorf("%s: want a number, not %q", name, words[i])
			}
			sum += n
		}
		number, err := strconv.Atoi(name)
		if err == nil && len(words) > i {
			name = words[len(words)-1]
			if sign > 0 {
				r.IRQs = append(r.IRQs, IRQ{Number: number, Name: name})
			}
		}
		r.Interrupts[name] += sign * sum
		return nil
	})
}

var virtioQueue = regexp.MustCompile(`^(virtio\d+)-(input|output|config)`)

// nameIRQs finds the device of each interrupt by its action: the device's name alone
// or with -rx-N or -tx-N, or a virtio queue, whose n-th device is the n-th NIC. Only
// interrupts of network devices stay.
func (r *Recording) nameIRQs() {
	var virtio []string
	for _, q := range r.IRQs {
		if m := virtioQueue.FindStringSubmatch(q.Name); m != nil && m[2] == "input" && !slices.Contains(virtio, m[1]) {
			virtio = append(virtio, m[1])
		}
	}
	slices.SortFunc(virtio, func(a, b string) int {
		if d := len(a) - len(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var network []IRQ
	for _, q := range r.IRQs {
		if m := virtioQueue.FindStringSubmatch(q.Name); m != nil {
			i := slices.Index(virtio, m[1])
			if i >= 0 && i < len(r.Devices) {
				q.Dev = r.Devices[i].Name
				q.Queue = map[string]string{"input": "rx", "output": "tx"}[m[2]]
			}
		}
		for i := range r.Devices {
			rest, ok := strings.CutPrefix(q.Name, r.Devices[i].Name)
			switch {
			case !ok:
			case rest == "":
				q.Dev = r.Devices[i].Name
			case strings.HasPrefix(rest, "-rx"):
				q.Dev, q.Queue = r.Devices[i].Name, "rx"
			case strings.HasPrefix(rest, "-tx"):
				q.Dev, q.Queue = r.Devices[i].Name, "tx"
			case strings.HasPrefix(rest, "-"):
				q.Dev = r.Devices[i].Name
			}
		}
		if q.Dev != "" {
			network = append(network, q)
		}
	}
	r.IRQs = network
}
