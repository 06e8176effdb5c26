/**
 * A machine that is made of namespaces. It has its own mounts, processes, network and cgroups, real services, and files
 * that survive a power cut.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RunResult, run } from '../../../tools/controlplane/run.ts';
import { must } from '../../../tools/release/commands.ts';
import { until } from '../wait.ts';

export const NETWORK = '10.90.0';
const PATH = '/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const HERE = import.meta.dirname;

export interface MachineOptions {
  readonly name: string;
  /** The last number of the machine's address. */
  readonly number: number;
  /** The directory that has all files of the machine. */
  readonly directory: string;
  /** Programs and images for all machines. */
  readonly parts: string;
  /** Name of the cgroup that all machines of this run are in. */
  readonly group: string;
}

export class Machine {
  readonly name: string;
  readonly address: string;
  /**
   * `root` is the folder that is `/` on the machine. `usr` is the folder with the files that differ from the /usr of
   * this host.
   */
  readonly root: string;
  readonly usr: string;
  readonly #options: MachineOptions;
  #process: ChildProcess | undefined;
  #init = 0;

  constructor(options: MachineOptions) {
    this.name = options.name;
    this.address = `${NETWORK}.${options.number}`;
    this.root = join(options.directory, 'root');
    this.usr = join(options.directory, 'usr');
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#process !== undefined;
  }

  /** The files of the running machine, with those in its memory, such as /run and /proc. */
  get live(): string {
    return `/proc/${this.#init}/root`;
  }

  async create(): Promise<void> {
    await must('sh', [join(HERE, 'make-root.sh'), this.#options.directory, this.name]);
  }

  async powerOn(): Promise<void> {
    const { directory, parts, group } = this.#options;
    const args = [
      join(HERE, 'enter.sh'),
      `${group}/${this.name}`,
      directory,
      this.name,
      this.address,
      parts,
    ];
    const child = spawn('sh', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = child;
    let said = '';
    child.stderr.on('data', (chunk) => {
      said += String(chunk);
    });
    const { pid } = child;
    if (pid === undefined) throw new Error(`${this.name}: sh cannot be started`);
    await until(`${this.name} to start`, 180, () => {
      if (child.exitCode !== null) throw new Error(`${this.name} did not start: ${said.trim()}`);
      this.#init = Number(
        readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0],
      );
      return this.#init > 0 && isApart(this.#init);
    });
    const end = `to-${this.name}`;
    await must('ip', [
      'link',
      'add',
      end,
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      String(this.#init),
    ]);
    await must('ip', ['link', 'set', end, 'master', 'machines', 'up']);
    await until(`${this.name} to boot`, 180, async () => {
      if (child.exitCode !== null) throw new Error(`${this.name} did not boot: ${said.trim()}`);
      return (await this.run('test -e /run/booted')).ok;
    });
  }

  /** Switches the machine off, as if its power cable were pulled. */
  async powerOff(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    this.#process = undefined;
    // The machine's first process ends after all its other processes. It then stays as a zombie, because nothing here
    // collects it.
    await until(`${this.name} to be off`, 180, async () => {
      const state = await readFile(`/proc/${this.#init}/stat`, 'utf8').catch(() => ') Z');
      return state.includes(') Z');
    });
    await run('ip', ['link', 'delete', `to-${this.name}`]);
  }

  /** Runs a script of sh as root. */
  async run(script: string): Promise<RunResult> {
    const enter = [
      '--target',
      String(this.#init),
      '--mount',
      '--uts',
      '--ipc',
      '--net',
      '--pid',
      '--cgroup',
    ];
    return await run('nsenter', [
      ...enter,
      'env',
      '-i',
      `PATH=${PATH}`,
      'HOME=/root',
      'sh',
      '-c',
      script,
    ]);
  }

  /** Works like `run`, but returns the output, and throws if the script fails. */
  async must(script: string): Promise<string> {
    const { ok, stdout, stderr } = await this.run(script);
    if (!ok)
      throw new Error(
        `${this.name}: ${script}: ${(stdout + stderr).trim().split('\n').slice(-12).join('\n')}`,
      );
    return stdout;
  }
}

/**
 * Reports whether the process already has its own network namespace. Before that, the process is a command of
 * `enter.sh`, which may end at any moment.
 */
function isApart(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`) !== readlinkSync('/proc/self/ns/net');
  } catch {
    return false;
  }
}
