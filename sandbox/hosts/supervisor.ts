/** Restarts a service as systemd does with `Restart=always` and a delay. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export class Supervisor {
  readonly #command: readonly string[];
  readonly #delayMs: number;
  readonly #onChange: (running: boolean) => void;
  #service: ChildProcess | undefined;
  #timer: NodeJS.Timeout | undefined;
  #starts = 0;
  #stopped = false;

  /**
   * Starts the service at once. `command` is a program and its arguments. `delayMs` is the time between the end of a
   * process and the next start. `onChange` is called for every start and end of a process.
   */
  constructor(
    command: readonly string[],
    delayMs: number,
    onChange: (running: boolean) => void = () => undefined,
  ) {
    this.#command = command;
    this.#delayMs = delayMs;
    this.#onChange = onChange;
    this.#start();
  }

  get pid(): number | undefined {
    return this.#service?.pid;
  }

  get starts(): number {
    return this.#starts;
  }

  /** Ends the service and does not start it again; resolves when its process has ended. */
  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    const service = this.#service;
    if (service === undefined) return;
    const gone = once(service, 'exit');
    service.kill(signal);
    await gone;
  }

  /** Starts a stopped service again, with the file that is at the path now. */
  resume(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#start();
  }

  #start(): void {
    const [program = '', ...args] = this.#command;
    this.#starts++;
    // The service watches this pipe: it exits when this process has ended.
    const service = spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'] });
    this.#service = service;
    this.#onChange(true);
    const ended = (): void => {
      if (this.#service !== service) return;
      this.#service = undefined;
      this.#onChange(false);
      if (!this.#stopped) this.#timer = setTimeout(() => this.#start(), this.#delayMs);
    };
    service.once('exit', ended);
    // If the file cannot be executed, the supervisor also tries again later.
    service.once('error', ended);
    service.stdin.once('error', () => undefined);
  }
}
