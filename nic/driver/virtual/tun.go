package virtual

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/softirq"
	"napisim/softirq/gro"
	"napisim/softirq/rps"
)

// maxRXFrames is the largest rx-frames of a tap device (NAPI_POLL_WEIGHT).
const maxRXFrames = softirq.NAPIPollWeight

// TunConfig describes a tap device.
type TunConfig struct {
	// Name is the interface's name, ID the id of its NAPI.
	Name string
	ID   int
	// Write names the tun_write behaviour.
	Write string
	// NAPI is IFF_NAPI (since v4.15): what is written waits for the device's own NAPI.
	NAPI bool
	// NAPIFrags is IFF_NAPI_FRAGS, which goes with NAPI (the form of v6.4 and later): the writer
	// gives each frame to GRO itself.
	NAPIFrags bool
	// GRO configures GRO of that NAPI; nil turns it off.
	GRO *gro.Config
	// RXFrames is ethtool -C rx-frames (since v4.11): how many frames may wait for the writer
	// to say that no more follow; 0 delivers each at once.
	RXFrames int
	// RPS steers what is written to other cores; nil does not.
	RPS *rps.Queue
}

// Validate returns every fault of the configuration.
func (c *TunConfig) Validate() []error {
	var faults []error
	w, err := find(tunWrites, func(b TunWriteBehaviour) string { return b.Name }, c.Write, "tun_write")
	if err != nil {
		faults = append(faults, err)
	}
	if c.RXFrames < 0 || c.RXFrames > maxRXFrames {
		faults = append(faults, fmt.Errorf("rx-frames: %d is not between 0 and %d", c.RXFrames, maxRXFrames))
	}
	if c.NAPIFrags && !c.NAPI {
		faults = append(faults, fmt.Errorf("IFF_NAPI_FRAGS: needs IFF_NAPI"))
	}
	if err == nil && c.NAPIFrags && !w.Frags {
		faults = append(faults, fmt.Errorf("tun_write: %s does not know IFF_NAPI_FRAGS", c.Write))
	}
	if err == nil && !w.Batches && (c.NAPI || c.RXFrames > 0) {
		faults = append(faults, fmt.Errorf("tun_write: %s knows neither IFF_NAPI nor rx-frames", c.Write))
	}
	return faults
}

// TunWriteBehaviour is one way of a written frame into the stack.
type TunWriteBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Batches tells that rx-frames and IFF_NAPI exist.
	Batches bool
	// Frags tells that a writer takes the NAPI for IFF_NAPI_FRAGS.
	Frags bool
	// Receive is the end of tun_get_user without IFF_NAPI. It takes s over.
	Receive func(d *Tun, c *cpu.Core, s *model.SKB, more bool)
}

// tunWrites is the table of tun_write behaviours.
var tunWrites = []TunWriteBehaviour{
	{"netif_rx_ni", false, false, (*Tun).netifRxNI},
	{"netif_receive_skb", false, false, (*Tun).netifReceive},
	{"rx_batched", true, false, (*Tun).rxBatched},
	{"frags_owned", true, true, (*Tun).rxBatched},
}

// TunWriteNames lists the values of the tun_write behaviour in the order of history.
func TunWriteNames() []string {
	var all []string
	for _, b := range tunWrites {
		all = append(all, b.Name)
	}
	return all
}

// Tun is a tap device with one queue and one writer.
type Tun struct {
	cfg   TunConfig
	host  driver.Host
	write TunWriteBehaviour
	napi  *softirq.NAPI // nil without IFF_NAPI
	queue model.SKBList // sk_write_queue: waits for the NAPI or the end of the batch
	stats TunStats
}

// TunStats are the counters of a tap device.
type TunStats struct {
	// Frames and Bytes count what was written (rx_packets and rx_bytes).
	Frames, Bytes int64
}

// NewTun makes a tap device. cfg must be valid.
func NewTun(cfg TunConfig, host driver.Host) *Tun {
	w, err := find(tunWrites, func(b TunWriteBehaviour) string { return b.Name }, cfg.Write, "tun_write")
	if err != nil {
		panic(err)
	}
	d := &Tun{cfg: cfg, host: host, write: w}
	if cfg.NAPI {
		d.napi = softirq.NewNAPI(softirq.NAPIConfig{Name: cfg.Name, ID: cfg.ID, GRO: cfg.GRO, RPS: cfg.RPS, Poll: d.poll})
	}
	return d
}

// Stats returns the device's counters.
func (d *Tun) Stats() TunStats { return d.stats }

// Write is tun_get_user: a task on core c writes a frame, f.Arrival being the instant at
// which it became due. more tells that the writer has another one at hand (MSG_MORE),
// which vhost knows and write does not.
func (d *Tun) Write(c *cpu.Core, f *model.Frame, more bool) {
	c.Spend(model.StageTunWrite)
	s := build(c, &d.host, d.cfg.Name, f)
	d.stats.Frames++
	d.stats.Bytes += int64(f.Len)
	switch {
	case d.cfg.NAPIFrags:
		d.napiFrags(c, s)
		return
	case d.napi != nil:
		d.napiReceive(c, s, more)
		return
	}
	d.write.Receive(d, c, s, more)
}

// netifRxNI is the end of tun_get_user up to v4.9.
func (d *Tun) netifRxNI(c *cpu.Core, s *model.SKB, _ bool) {
	d.host.Softnets[c.ID].NetifRxNI(d.cfg.RPS, s)
}

// netifReceive is the end of tun_get_user of v4.10.
func (d *Tun) netifReceive(c *cpu.Core, s *model.SKB, _ bool) {
	c.BHDisable()
	d.host.Softnets[c.ID].NetifReceiveSKB(d.cfg.RPS, s)
	c.BHEnable()
}

// rxBatched is tun_rx_batched (since v4.11): while the writer says that more follow,
// frames wait, at most rx-frames of them, and all are received in one section with
// softirqs off. The queue has one writer, who alone looks at it.
func (d *Tun) rxBatched(c *cpu.Core, s *model.SKB, more bool) {
	if d.cfg.RXFrames == 0 || !more && d.queue.Len() == 0 {
		d.netifReceive(c, s, more)
		return
	}
	if more && d.queue.Len() < d.cfg.RXFrames {
		d.queue.PushBack(s)
		return
	}
	d.queue.PushBack(s)
	c.BHDisable()
	for s := d.queue.PopFront(); s != nil; s = d.queue.PopFront() {
		d.host.Softnets[c.ID].NetifReceiveSKB(d.cfg.RPS, s)
	}
	c.BHEnable()
}

// napiReceive is the end of tun_get_user with IFF_NAPI (since v4.15): the frame waits
// for the NAPI, which local_bh_enable polls.
func (d *Tun) napiReceive(c *cpu.Core, s *model.SKB, more bool) {
	c.BHDisable()
	d.queue.PushBack(s)
	if !more || d.queue.Len() > softirq.NAPIPollWeight {
		d.host.Softnets[c.ID].NAPISchedule(d.napi)
	}
	c.BHEnable()
}

// napiFrags is the end of tun_get_user with IFF_NAPI_FRAGS since v6.4. A frame that finds
// the NAPI owned is refused.
func (d *Tun) napiFrags(c *cpu.Core, s *model.SKB) {
	c.BHDisable()
	if !d.host.Softnets[c.ID].GROFragsAlone(d.napi, s) {
		drop(c, &d.host, s, model.DropFullRing)
	}
	c.BHEnable()
}

// poll is tun_napi_poll with tun_napi_receive.
func (d *Tun) poll(budget int) (work int) {
	c := d.napi.Core()
	c.Look()
	for work < budget {
		s := d.queue.PopFront()
		if s == nil {
			break
		}
		work++
		d.napi.GROReceive(s)
		c.Look()
	}
	if work < budget {
		d.napi.CompleteDone(work)
	}
	return work
}
