"""terminal.py STEP METRICS COMMAND...: runs it in a terminal, closes that at this step, exits as the command does."""
import os, pty, sys, time
process, terminal = pty.fork()
if process == 0:
    os.execv(sys.argv[3], sys.argv[3:])
os.set_blocking(terminal, False)
while not (os.path.exists(sys.argv[2]) and f'"step":{sys.argv[1]},' in open(sys.argv[2]).read()):
    try:
        os.read(terminal, 65536)
    except BlockingIOError:
        time.sleep(0.02)
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
