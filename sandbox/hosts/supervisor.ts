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
   * Starts at once. `command` is a program and its arguments; `delayMs` passes between an end and the next start;
   * `onChange` hears of every start and end of a process.
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

  /** Ends the service for good; resolves when its process is gone. */
  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    const service = this.#service;
    if (service === undefined) return;
    const gone = once(service, 'exit');
    service.kill(signal);
    await gone;
  }

  /** Once it was stopped; starts whatever lies at the path now. */
  resume(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#start();
  }

  #start(): void {
    const [program = '', ...args] = this.#command;
    this.#starts++;
    // The pipe is the service's life line: it ends itself where this process is gone.
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
    // A file that cannot be executed is one more reason to try again later.
    service.once('error', ended);
    service.stdin.once('error', () => undefined);
  }
}
