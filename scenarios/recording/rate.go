package recording

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Forms of an offered rate.
const (
	Bursts     = "bursts"      // Burst frames at once, one burst each Every
	Slots      = "slots"       // Burst frames let out of a qdisc each Every
	Paced      = "paced"       // PerSecond, in bursts of Burst if that is more than 1
	Saturation = "saturation"  // as fast as the sender can
	ClosedLoop = "closed loop" // the next request follows the answer
	NoTraffic  = "none"
)

// A Rate says how the sender offers packets.
type Rate struct {
	Form      string  // one of the constants, "" if unknown
	Burst     int     // frames of one burst, 0 if unknown
	Every     int64   // ns from burst to burst, 0 if unknown
	PerSecond float64 // packets, of Paced
}

var (
	perSecond = regexp.MustCompile(`^(\d+(?:\.\d+)?)/s(?: in bursts of (\d+))?$`)
	burstEach = regexp.MustCompile(`^(?:one burst|bursts? of (\d+)(?: frames)?) each (\d+) ?(ns|us|ms|s)$`)
	slotsEach = regexp.MustCompile(`^slots of (\d+) frames each (\d+) ?(ns|us|ms|s)$`)
	burstSize = regexp.MustCompile(`\bbursts? of (\d+)\b([^,]|, |$)`)
)

// ParseRate reads the rate of meta.yaml: "50000/s", "80000/s in bursts of 4", "one burst
// each 10 ms", "burst of 64 each 10 ms", "slots of 300 frames each 20ms", "saturation",
// "closed loop", "none" or nothing.
func ParseRate(s string) (Rate, error) {
	switch s = strings.TrimSpace(s); s {
	case "":
		return Rate{}, nil
	case Saturation, ClosedLoop, NoTraffic:
		return Rate{Form: s}, nil
	}
	if m := perSecond.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil || n <= 0 {
			return Rate{}, fmt.Errorf("want more than 0 packets a second, not %q", s)
		}
		r := Rate{Form: Paced, PerSecond: n, Burst: atoi(m[2])}
		r.space()
		return r, nil
	}
	if m := burstEach.FindStringSubmatch(s); m != nil {
		return Rate{Form: Bursts, Burst: atoi(m[1]), Every: duration(m[2], m[3])}, nil
	}
	if m := slotsEach.FindStringSubmatch(s); m != nil {
		return Rate{Form: Slots, Burst: atoi(m[1]), Every: duration(m[2], m[3])}, nil
	}
	return Rate{}, fmt.Errorf("%q is no rate: want N/s, burst of N each TIME, slots of N frames each TIME, saturation, closed loop or none", s)
}

// space sets the time between the bursts of a paced sender.
func (r *Rate) space() {
	if r.PerSecond > 0 {
		r.Every = int64(1e9 / r.PerSecond * float64(max(r.Burst, 1)))
	}
}

// burstOf finds "bursts of N" in a description; a list of sizes gives 0.
func burstOf(s string) int {
	if m := burstSize.FindStringSubmatch(s); m != nil {
		return atoi(m[1])
	}
	return 0
}

// atoi returns a number of digits, 0 for what is none or too large.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// duration returns ns.
func duration(number, unit string) int64 {
	return int64(atoi(number)) * map[string]int64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
}

// A Kind says which way of comparing suits a recording.
type Kind string

// The kinds.
const (
	KindBurst      Kind = "burst"      // bursts with silence between: every step can be compared
	KindPaced      Kind = "paced"      // one packet or a few, every so often
	KindSaturation Kind = "saturation" // UDP as fast as it goes
	KindTCP        Kind = "tcp"        // bulk
	KindRR         Kind = "rr"         // request and response
	KindCost       Kind = "cost"       // bursts of several sizes with few events, to learn what polls cost
	KindOther      Kind = "other"
)

// leastGap is the time between bursts from which a burst of one frame is a burst: all
// work of one is over long before the next.
const leastGap = 1_000_000

// Kind derives the kind from the reports of the tools, the rate and the events.
func (r *Recording) Kind() Kind {
	if r.EventNames["softirq_entry"] == 0 {
		return KindOther
	}
	role := r.Sender.Role
	if role == "" {
		role = r.Receiver.Role
	}
	switch {
	case strings.HasPrefix(role, "rr"), r.Rate.Form == ClosedLoop:
		return KindRR
	case strings.HasPrefix(role, "tcp"):
		return KindTCP
	case r.Rate.Form == NoTraffic:
		return KindOther
	case r.few() && r.pollSizes() >= 4:
		return KindCost
	}
	switch r.Rate.Form {
	case Saturation:
		return KindSaturation
	case Slots:
		return KindBurst
	case Bursts:
		if r.Rate.Burst > 1 || r.Rate.Every >= leastGap {
			return KindBurst
		}
		return KindPaced
	case Paced:
		if r.Rate.Burst > 1 && r.Rate.Every >= leastGap {
			return KindBurst
		}
		return KindPaced
	}
	return r.kindFromTrace()
}

// few reports whether only the events of interrupts, softirqs and polls were recorded.
func (r *Recording) few() bool {
	return r.EventNames["sched_wakeup"] == 0 && r.EventNames["netif_receive_skb"] == 0 &&
		r.EventNames["napi_gro_receive_entry"] == 0 && r.Dropped == 0
}

// pollSizes counts how many different amounts of work the polls did.
func (r *Recording) pollSizes() int {
	sizes := map[int]bool{}
	for i := range r.Events {
		if p, ok := r.Events[i].Poll(); ok && p.Work > 0 {
			sizes[p.Work] = true
		}
	}
	return len(sizes)
}

// kindFromTrace judges by the events alone.
func (r *Recording) kindFromTrace() Kind {
	held, silent, full, polls := 0, 0, 0, 0
	var last int64
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Name {
		case "napi_gro_receive_exit":
			if n, _ := e.Int("ret"); n <= 2 {
				held++
			}
		case "napi_poll":
			p, _ := e.Poll()
			if p.Work <= 0 {
				continue
			}
			polls++
			if p.Work >= p.Budget {
				full++
			}
			if last != 0 && e.At-last >= leastGap {
				silent++
			}
			last = e.At
		}
	}
	switch {
	case polls == 0:
		return KindOther
	case held > 0:
		return KindTCP
	case silent > 0 && (full > 0 || silent*2 > polls):
		return KindBurst
	case full*2 > polls:
		return KindSaturation
	}
	return KindPaced
}
