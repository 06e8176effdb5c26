/** Owns restarting a service that systemd runs: its unit is found from the process, else from the binary. */
import { readFile } from 'node:fs/promises';
import type { Commands } from './commands.ts';
import type { ProcessId } from './host.ts';
import { isSameProcess } from './host.ts';
import { findProcess } from './processes.ts';
import type { ManagedService, ServiceManager } from './service-manager.ts';

/** What `systemctl show` tells of one unit. */
interface Unit {
  readonly id: string;
  /** 0 where none runs. */
  readonly mainPid: number;
  readonly activeState: string;
  readonly execStart: string;
}

const PROPERTIES = '--property=Id,MainPID,ActiveState,ExecStart';

export class Systemd implements ServiceManager {
  readonly #commands: Commands;
  readonly #readCgroup: (pid: number) => Promise<string>;

  constructor(commands: Commands, readCgroup = readCgroupOf) {
    this.#commands = commands;
    this.#readCgroup = readCgroup;
  }

  async find(process: ProcessId, binary: string): Promise<ManagedService | undefined> {
    const isAlive = isSameProcess(await findProcess(process.pid), process);
    const unit = isAlive ? await this.#unitOf(process) : await this.#unitFor(binary);
    if (unit === undefined) return undefined;
    return {
      title: `systemd unit ${unit.id}`,
      isTakenCareOf: !isAlive && unit.mainPid !== 0,
      restart: async () => await this.#restart(unit),
    };
  }

  /** A cgroup also holds what a service merely started, so the unit must name the process, or the shell around it. */
  async #unitOf({ pid, parent }: ProcessId): Promise<Unit | undefined> {
    const name = unitNameIn(await this.#readCgroup(pid));
    if (name === undefined) return undefined;
    const units = parseUnits(await this.#commands.ask('systemctl', 'show', PROPERTIES, name));
    return units.find(({ mainPid }) => mainPid === pid || (mainPid === parent && mainPid > 1));
  }

  /** Of a process that is gone nothing is left to be read; its unit names the file that it starts. */
  async #unitFor(binary: string): Promise<Unit | undefined> {
    const units = parseUnits(await this.#commands.ask('systemctl', 'show', PROPERTIES, '*.service'));
    return units.find(({ execStart }) => execStart.includes(`path=${binary} ;`));
  }

  /**
   * `restart` and not `start`, which waits for a pending RestartSec. Without waiting: the agent asks the service itself
   * whether it is back. Where the agent is in the very cgroup of the service, this ends it no more than SIGTERM would:
   * the unit's KillMode decides in both cases, and the order stands once the command has returned.
   */
  async #restart({ id, activeState }: Unit): Promise<void> {
    if (activeState === 'failed') await this.#commands.ask('systemctl', 'reset-failed', id);
    await this.#commands.ask('systemctl', 'restart', '--no-block', id);
  }
}

/** The innermost unit in proc_pid_cgroup(5): in systemd's own hierarchy where cgroups are version 1, else in the only one. */
export function unitNameIn(cgroup: string): string | undefined {
  const lines = cgroup.split('\n');
  const line =
    lines.find((candidate) => candidate.includes(':name=systemd:')) ??
    lines.find((candidate) => candidate.startsWith('0::'));
  return line?.split('/').findLast((segment) => segment.endsWith('.service'));
}

/** Blocks of `Key=value` lines, with an empty line between units. */
export function parseUnits(text: string): Unit[] {
  return text.split(/\n\n+/).flatMap((block) => {
    const fields = new Map(block.split('\n').map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]));
    const id = fields.get('Id');
    if (!id) return [];
    const [mainPid, activeState] = [Number(fields.get('MainPID')), fields.get('ActiveState') ?? ''];
    return [{ id, mainPid, activeState, execStart: fields.get('ExecStart') ?? '' }];
  });
}

async function readCgroupOf(pid: number): Promise<string> {
  return await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
}
