package model_test

import (
	"regexp"
	"strings"
	"testing"

	"napisim/model"
)

var identifier = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// Every stage has a name of its own, which platform files use, and says what work it
// stands for. Those charged per byte say so in their names.
func TestStagesAreComplete(t *testing.T) {
	seen := map[string]model.Stage{}
	for s := range model.NumStages {
		name := s.String()
		if !identifier.MatchString(name) {
			t.Errorf("stage %d is called %q", s, name)
		}
		if before, ok := seen[name]; ok {
			t.Errorf("stages %d and %d are both called %s", before, s, name)
		}
		seen[name] = s
		if len(s.Doc()) < 10 || strings.HasSuffix(s.Doc(), ".") {
			t.Errorf("stage %s is documented as %q", name, s.Doc())
		}
		if per := strings.HasSuffix(name, "_byte"); per != s.PerByte() {
			t.Errorf("stage %s: charged per byte is %v", name, s.PerByte())
		}
		if got, err := model.ParseStage(name); err != nil || got != s {
			t.Errorf("ParseStage(%s) = %d, %v, want %d", name, got, err, s)
		}
	}
	for _, name := range []string{"", "hardirq", "Tick", "tick "} {
		if s, err := model.ParseStage(name); err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("ParseStage(%q) = %d, %v, want an error that names it", name, s, err)
		}
	}
}

// Every reason says what it is called, where it strikes and which counter moves.
func TestDropReasonsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for r := range model.NumDropReasons {
		if !identifier.MatchString(r.String()) || seen[r.String()] {
			t.Errorf("reason %d is called %q, as another or not like a name", r, r)
		}
		seen[r.String()] = true
		if r.Place() == "" || r.Counter() == "" {
			t.Errorf("reason %s: place %q, counter %q", r, r.Place(), r.Counter())
		}
		if beforeSKB := r <= model.DropXDP; beforeSKB != (r.Location() == "") {
			t.Errorf("reason %s: kfree_skb is called in %q", r, r.Location())
		}
	}
}

func TestLosses(t *testing.T) {
	var l model.Losses
	l.Add(model.DropRxMissed, 3)
	l.Add(model.DropUDPRcvbuf, 4)
	l.Add(model.DropRxMissed, 1)
	if l[model.DropRxMissed] != 4 || l[model.DropUDPRcvbuf] != 4 || l.Total() != 8 {
		t.Errorf("losses are %v, together %d", l, l.Total())
	}
}

// The wire carries 8 bytes of preamble, the frame with at least 60 bytes, 4 of FCS
// and a gap of 12: the 64-byte frames of a 10-gigabit link are 14.88 million a second.
func TestWireBytes(t *testing.T) {
	for length, want := range map[int32]int64{0: 84, 59: 84, 60: 84, 61: 85, 1514: 1538} {
		if got := model.WireBytes(length); got != want {
			t.Errorf("a frame of %d bytes takes %d on the wire, want %d", length, got, want)
		}
	}
	if pps := 10_000_000_000 / (8 * model.WireBytes(60)); pps != 14_880_952 {
		t.Errorf("10 Gbit/s carry %d shortest frames a second", pps)
	}
}

// Headers are 14 + 20 + 32 bytes with TCP and 14 + 20 + 8 with UDP; an MTU of 1500
// leaves a frame of 1514 bytes.
func TestFrameLengths(t *testing.T) {
	for payload, want := range map[int32]int32{0: 66, 1: 67, 1448: 1514} {
		if got := model.TCPFrameLen(payload); got != want {
			t.Errorf("TCP frame with %d bytes is %d long, want %d", payload, got, want)
		}
	}
	for payload, want := range map[int32]int32{0: 60, 17: 60, 18: 60, 19: 61, 1472: 1514} {
		if got := model.UDPFrameLen(payload); got != want {
			t.Errorf("UDP frame with %d bytes is %d long, want %d", payload, got, want)
		}
	}
}

// net.core.rmem_default is 256 times SKB_TRUESIZE(256): descriptor, shared info and
// data.
func TestTruesizeConstants(t *testing.T) {
	if got := 256 * (256 + model.SKBHead + model.SharedInfo); got != 212992 {
		t.Errorf("256 small packets take %d bytes", got)
	}
}

func TestProtoNames(t *testing.T) {
	if model.UDP.String() != "UDP" || model.TCP.String() != "TCP" {
		t.Errorf("protocols are %v and %v", model.UDP, model.TCP)
	}
}
