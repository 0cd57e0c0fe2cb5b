package server

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// loopBuffer is how much a loop reads at once. A message that was left
// incomplete, of up to maxInLoop bytes, lies in front of it.
const loopBuffer = 128 << 10

// loopEvents is how many connections are served between two waits.
const loopEvents = 128

// turn is how long a busy loop has its processor to itself. After 10 ms the
// scheduler would take it away, and then look every 20 µs whether it is to do
// so again.
const turn = 8 * time.Millisecond

// maxUnused is how many turns may pass without any event until a loop is not
// busy any more.
const maxUnused = 8

// busyLoops counts the loops of all servers that are busy: one processor is
// left for the rest of the program.
var busyLoops atomic.Int32

// readable is what epoll is asked for of a connection that is read.
const readable = unix.EPOLLIN | unix.EPOLLRDHUP

// errEnded says that both sides of a session are gone.
var errEnded = errors.New("the session has ended")

// loops share the sessions of a server that are at rest or only pass messages
// on.
type loops struct {
	all  []*loop
	next atomic.Uint32
}

// startLoops starts as many loops as can be busy: each leaves a processor to
// Postgres or the rest of the proxy.
func startLoops(log *zap.Logger) (*loops, error) {
	ls := &loops{}
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		l, err := newLoop(log)
		if err != nil {
			ls.stop()
			return nil, err
		}
		ls.all = append(ls.all, l)
		go l.run()
	}
	return ls, nil
}

// stop hands every session back to goroutines, and returns when no loop is
// left.
func (ls *loops) stop() {
	if ls == nil {
		return
	}
	for _, l := range ls.all {
		l.mu.Lock()
		l.stopping = true
		l.wake()
		l.mu.Unlock()
		<-l.done
	}
}

// traffic returns the counters of all loops.
func (ls *loops) traffic() []*traffic {
	if ls == nil {
		return nil
	}
	counted := make([]*traffic, len(ls.all))
	for i, l := range ls.all {
		counted[i] = &l.traffic
	}
	return counted
}

// loop serves many sessions in one goroutine: it waits for bytes to read on
// any of their connections, walks them in its own buffer and sends them on
// with one system call for each read. It never waits for anything else; a
// session in which something has to be waited for goes back to goroutines.
type loop struct {
	log    *zap.Logger
	epoll  int
	event  int // an eventfd: there are arrivals, or the loop is to stop
	timer  int // a timerfd: a turn is over
	done   chan struct{}
	buffer []byte
	events []unix.EpollEvent
	byFD   []*polled // by descriptor
	busy   bool      // it keeps its processor while it waits
	unused int       // turns since the last event

	traffic traffic // of the sessions while they are here

	mu       sync.Mutex // guards what follows
	arrivals []*session
	stopping bool
}

// polled is one connection of a session in a loop.
type polled struct {
	session *session
	loop    *loop
	fd      int
	peer    *polled
	in      *frameReader // what is read here
	out     *sender      // what is sent here
	relay   func() error
	mask    uint32 // what epoll was asked for
}

func newLoop(log *zap.Logger) (_ *loop, err error) {
	l := &loop{
		log:    log,
		epoll:  -1,
		event:  -1,
		timer:  -1,
		done:   make(chan struct{}),
		buffer: make([]byte, maxInLoop+loopBuffer),
		events: make([]unix.EpollEvent, loopEvents),
	}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if l.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	if err = l.add(l.event, unix.EPOLLIN); err != nil {
		return nil, err
	}
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, err
	}
	return l, l.add(l.timer, unix.EPOLLIN|unix.EPOLLET)
}

func (l *loop) close() {
	for _, fd := range [...]int{l.epoll, l.event, l.timer} {
		unix.Close(fd) // which is -1 if it could not be had
	}
}

func (l *loop) add(fd int, events uint32) error {
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// wake makes the loop look at what mu guards, if it has not ended; the caller
// holds mu.
func (l *loop) wake() {
	select {
	case <-l.done:
	default:
		one := [8]byte{1}
		// Full means that the loop is woken already.
		_, _ = unix.Write(l.event, one[:])
	}
}

// run serves until the loop is stopped.
func (l *loop) run() {
	for {
		for _, e := range l.events[:l.wait()] {
			fd := int(e.Fd)
			if fd == l.timer {
				l.yield()
				continue
			}
			l.unused = 0
			if fd == l.event {
				if l.takeArrivals() {
					l.dismiss()
					return
				}
				continue
			}
			// One that has left during this round is not there any more.
			if p := l.byFD[fd]; p != nil {
				l.serve(p, e.Events)
			}
		}
	}
}

// wait returns how many events there are. Those that a busy loop waits for come
// soon: it keeps its processor, and the scheduler has nothing to do for a wait,
// nor to watch.
func (l *loop) wait() int {
	if l.busy {
		// A signal, by which the scheduler asks for the processor, ends it.
		n, _, _ := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events)), ^uintptr(0), 0, 0)
		return max(0, int(n))
	}
	n, err := unix.EpollWait(l.epoll, l.events, -1)
	if err != nil {
		return 0
	}
	l.keepProcessor()
	return n
}

// keepProcessor makes the loop busy, if others have a processor left.
func (l *loop) keepProcessor() {
	l.busy = int(busyLoops.Add(1)) < runtime.GOMAXPROCS(0) && l.startTurn()
	l.unused = 0
	if !l.busy {
		busyLoops.Add(-1)
	}
}

// giveUpProcessor ends what keepProcessor has begun.
func (l *loop) giveUpProcessor() {
	if l.busy {
		l.busy = false
		busyLoops.Add(-1)
	}
}

// startTurn has the timer end the loop's next turn on its processor.
func (l *loop) startTurn() bool {
	return unix.TimerfdSettime(l.timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(turn))}, nil) == nil
}

// yield lets others have the processor, and starts another turn unless nothing
// has happened for several.
func (l *loop) yield() {
	runtime.Gosched()
	l.unused++
	if l.unused >= maxUnused || !l.startTurn() {
		l.giveUpProcessor()
	}
}

// takeArrivals takes in the sessions that have come, and reports whether the
// loop is to stop.
func (l *loop) takeArrivals() (stopping bool) {
	var count [8]byte
	_, _ = unix.Read(l.event, count[:])
	l.mu.Lock()
	arrivals, stopping := l.arrivals, l.stopping
	l.arrivals = nil
	l.mu.Unlock()
	for _, s := range arrivals {
		l.take(s)
	}
	return stopping
}

// take registers a session's connections.
func (l *loop) take(s *session) {
	for i := range s.polled {
		p := &s.polled[i]
		for p.fd >= len(l.byFD) {
			l.byFD = append(l.byFD, make([]*polled, max(64, len(l.byFD)))...)
		}
		l.byFD[p.fd] = p
	}
	for i := range s.polled {
		p := &s.polled[i]
		p.mask = unix.EPOLLET | readable
		if err := l.add(p.fd, p.mask); err != nil {
			l.release(s)
			return
		}
	}
	client := &s.polled[0]
	if client.in.w > 0 {
		// The message that the client's goroutine was woken by.
		l.guarded(client, client.pass)
	}
}

// dismiss ends the loop: goroutines have every session.
func (l *loop) dismiss() {
	for _, p := range l.byFD {
		if p != nil && l.byFD[p.fd] != nil {
			l.release(p.session)
		}
	}
	l.giveUpProcessor()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close()
	close(l.done)
}

// release hands a session to goroutines.
func (l *loop) release(s *session) {
	for i := range s.polled {
		p := &s.polled[i]
		l.byFD[p.fd] = nil
		// Whatever was not registered need not be removed.
		_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, p.fd, nil)
	}
	if err := s.leaveLoop(); err != nil {
		s.log.Warn("session ended", zap.Error(err))
		s.end()
		return
	}
	go func() {
		defer recoverTo(s.log)
		s.relay()
	}()
}

// serve does what an event asks for.
func (l *loop) serve(p *polled, events uint32) {
	l.guarded(p, func() error {
		if events&unix.EPOLLOUT != 0 {
			if err := p.out.Flush(); err != nil {
				return err
			}
			if err := p.peer.watch(); err != nil {
				return err
			}
		}
		if events&^unix.EPOLLOUT == 0 {
			return nil
		}
		if p.mask&unix.EPOLLIN == 0 {
			return errNotHere // it has failed while it was not read
		}
		return p.read(l.buffer, events)
	})
}

// guarded runs one step of a session. What it cannot do the goroutines do.
func (l *loop) guarded(p *polled, step func() error) {
	s := p.session
	defer func() {
		if cause := recover(); cause != nil {
			logPanic(s.log, cause)
			l.end(s)
		}
	}()
	switch err := step(); err {
	case nil:
	case errEnded:
		l.end(s)
	default:
		for i := range s.polled {
			s.polled[i].in.keep()
			s.polled[i].out.keep()
		}
		l.release(s)
	}
}

// end ends a session here: both sides have been told what there is to tell.
func (l *loop) end(s *session) {
	for i := range s.polled {
		l.byFD[s.polled[i].fd] = nil
		unix.Close(s.polled[i].fd)
	}
	s.end()
}

// read reads once and passes on what came. An event says only once that there
// are bytes: those that one read leaves, and an end behind them, have to be
// asked for.
func (p *polled) read(buffer []byte, events uint32) error {
	left := copy(buffer, p.in.buf[p.in.r:p.in.w])
	n, err := receive(p.fd, buffer[left:])
	switch {
	case err == unix.EAGAIN:
		return nil
	case err != nil:
		p.in.failed = err
		return err
	case n == 0:
		return p.ended()
	}
	p.in.count.Add(int64(n))
	p.in.give(buffer[:left+n])
	if err := p.pass(); err != nil {
		return err
	}
	if events&^(unix.EPOLLIN|unix.EPOLLOUT) != 0 || left+n == len(buffer) {
		return p.rearm()
	}
	return nil
}

// ended passes an end of file on. In the middle of anything that is done by
// goroutines, which read it again.
func (p *polled) ended() error {
	if !p.in.atBoundary() || p.out.isBlocked() || p.peer.out.isBlocked() {
		return errNotHere
	}
	if p.isBackend() {
		return errEnded
	}
	// Postgres is told, and decides about what still runs.
	p.mask = 0
	if err := unix.EpollCtl(p.loop.epoll, unix.EPOLL_CTL_DEL, p.fd, nil); err != nil {
		return err
	}
	return unix.Shutdown(p.peer.fd, unix.SHUT_WR)
}

func (p *polled) isBackend() bool { return p == &p.session.polled[1] }

// pass passes on what has been read.
func (p *polled) pass() error {
	if err := p.relay(); err != errNoMore {
		return err
	}
	if err := p.peer.out.Flush(); err != nil {
		return err
	}
	p.in.keep()
	return p.watch()
}

// watch asks for the events that matter now: nothing more is read here while
// the peer has not taken what was.
func (p *polled) watch() error {
	blocked := p.peer.out.isBlocked()
	if err := p.ask(readable, !blocked); err != nil {
		return err
	}
	return p.peer.ask(unix.EPOLLOUT, blocked)
}

func (p *polled) ask(event uint32, on bool) error {
	mask := p.mask &^ event
	if on {
		mask |= event
	}
	if mask == p.mask {
		return nil
	}
	p.mask = mask
	return p.rearm()
}

// rearm makes epoll report what is there already, too.
func (p *polled) rearm() error {
	return unix.EpollCtl(p.loop.epoll, unix.EPOLL_CTL_MOD, p.fd, &unix.EpollEvent{Events: p.mask, Fd: int32(p.fd)})
}

// receive and send are the system calls, which do not wait: the scheduler is
// not told of them.
func receive(fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// send returns how much was taken, which may be nothing.
func send(fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EAGAIN:
			return 0, nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
