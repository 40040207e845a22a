package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Process is a program that was started, with all that it starts.
type Process struct {
	name string
	log  string // the file of what it printed
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended, once it is done
}

// launch starts a program that prints into the directory, with some variables more than the environment has. What it
// printed in an earlier life is kept.
func launch(dir string, variables []string, name, program string, args ...string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), cmd: exec.Command(program, args...), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), variables...)
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ForTest kills the process when the test is over, however it ends, and says what it printed if the test has failed. One that did not
// start fails the test.
func ForTest(t testing.TB, process *Process, err error) *Process {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Log(process.Tail(20))
		}
	})
	return process
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process at once with SIGKILL, and all that it started. It waits until it has ended.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Stop asks the process to end with SIGTERM and waits for it. One that takes longer than the time given is
// killed, which is an error, as is a process that ends otherwise than with success.
func (p *Process) Stop(patience time.Duration) error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM", p.name, patience)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w; it printed:\n%s", p.name, p.err, p.Tail(20))
	}
	return nil
}

func (p *Process) signal(signal syscall.Signal) {
	select {
	case <-p.done: // its number may be another's by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, signal)
	}
}

// PeakMemory is the most memory that the process has had so far, in bytes. It is 0 once the process has ended, and
// where the system does not tell.
func (p *Process) PeakMemory() int64 { return peakMemory(p.cmd.Process.Pid) }

// CPU is the processor time that the process took so far. It is known once the process has ended, and before that where the system tells.
func (p *Process) CPU() time.Duration {
	select {
	case <-p.done: // its number may be another's by now
	default:
		if so, told := cpuTime(p.cmd.Process.Pid); told {
			return so
		}
		<-p.done
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

var errEnded = errors.New("it ended")

// ended says how the process ended, with what it printed last.
func (p *Process) ended() error {
	return fmt.Errorf("%s: %w (%v); it printed:\n%s", p.name, errEnded, p.err, p.Tail(20))
}

// Output is all that the process printed, in earlier lives too.
func (p *Process) Output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail is the last lines that the process printed.
func (p *Process) Tail(lines int) string {
	text := p.Output()
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '\n' && i < len(text)-1 {
			if lines--; lines == 0 {
				return text[i+1:]
			}
		}
	}
	return text
}
