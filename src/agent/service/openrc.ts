/** Owns restarting a service that OpenRC supervises: its name is found from the supervisor, else from the init scripts. */
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Commands } from './commands.ts';
import type { ProcessId } from './host.ts';
import { isSameProcess } from './host.ts';
import { argumentsOf, findProcess, variableOf } from './processes.ts';
import type { ManagedService, ServiceManager } from './service-manager.ts';

const SUPERVISOR = 'supervise-daemon';
const INIT_SCRIPTS = '/etc/init.d';

export class OpenRc implements ServiceManager {
  readonly #commands: Commands;
  readonly #initScripts: string;

  constructor(commands: Commands, initScripts = INIT_SCRIPTS) {
    this.#commands = commands;
    this.#initScripts = initScripts;
  }

  async find(process: ProcessId, binary: string): Promise<ManagedService | undefined> {
    const supervised = await serviceUnder(process.parent);
    const name = supervised ?? (await this.#serviceFor(process, binary));
    if (name === undefined) return undefined;
    const isAlive = isSameProcess(await findProcess(process.pid), process);
    return {
      title: `OpenRC service ${name}`,
      // A supervisor between two processes cannot be hurried: `rc-service` then finds it running and gives up.
      isTakenCareOf: !isAlive && supervised !== undefined,
      // Without --nodeps whatever needs the service is stopped too, and that may be this agent.
      restart: async () => await this.#commands.order('rc-service', '--nodeps', name, 'restart'),
    };
  }

  /** A supervisor that has given up is gone, and only the script that started it names the file. */
  async #serviceFor(process: ProcessId, binary: string): Promise<string | undefined> {
    if ((await findProcess(process.parent)) !== undefined) return undefined;
    for (const name of await readdir(this.#initScripts).catch(() => [])) {
      const script = await readFile(join(this.#initScripts, name), 'utf8').catch(() => '');
      if (script.includes(SUPERVISOR) && namesFile(script, binary)) return name;
    }
    return undefined;
  }
}

async function serviceUnder(supervisor: number): Promise<string | undefined> {
  const [program = '', name] = await argumentsOf(supervisor);
  if (basename(program) !== SUPERVISOR) return undefined;
  return (await variableOf(supervisor, 'RC_SVCNAME')) ?? name;
}

/** As a word of its own: `/usr/bin/k0s` is no part of `/usr/bin/k0s-old`. */
function namesFile(script: string, path: string): boolean {
  return script.split(/[\s"'=;]+/).includes(path);
}
