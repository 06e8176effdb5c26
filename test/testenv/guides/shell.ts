/** The shell of a reader: a directory, and the commands that guides use. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { REFIT } from '../../../sandbox/refit.ts';
import { ROOT } from '../../repo/tree.ts';
import type { Block } from './blocks.ts';

export interface ShellResult {
  readonly code: number | null;
  /** Both outputs. */
  readonly said: string;
}

/** Runs bash as a reader does: a failing line ends a block. */
export class ReaderShell implements AsyncDisposable {
  readonly directory: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #services: { readonly title: string; readonly child: ChildProcess; said: string }[] = [];

  /** `directory` must not exist yet. It then contains `deploy/`, as a release does. */
  static async open(
    directory: string,
    environment: Readonly<Record<string, string>>,
  ): Promise<ReaderShell> {
    const bin = join(directory, 'bin');
    await mkdir(bin, { recursive: true });
    await symlink(join(ROOT, 'deploy'), join(directory, 'deploy'));
    const path = `${bin}:${process.env['PATH']}`;
    const shell = new ReaderShell(directory, {
      ...process.env,
      HOME: directory,
      PATH: path,
      ...environment,
    });
    // Drops the options for Node, which only the one-file binary accepts. They may switch off the compilers that Node
    // needs to read TypeScript.
    await shell.command(
      'refit',
      `case "$1" in --node-options=*) shift;; esac\nexec ${process.execPath} ${REFIT} "$@"`,
    );
    return shell;
  }

  private constructor(directory: string, environment: NodeJS.ProcessEnv) {
    this.directory = directory;
    this.#environment = environment;
  }

  /** Adds a command to PATH. */
  async command(name: string, script: string): Promise<void> {
    await writeFile(join(this.directory, 'bin', name), `#!/bin/bash\n${script}\n`, { mode: 0o755 });
  }

  /** Writes the file, starts the service, or runs the commands. Fails with the output of the commands. */
  async follow({ use, text, title }: Block): Promise<void> {
    if (use === 'service') this.start(title, text);
    else if (use === 'run') expect(await this.run(text)).toMatchObject({ code: 0 });
    else await writeFile(join(this.directory, use), text);
  }

  async run(text: string): Promise<ShellResult> {
    const child = this.#spawn(text);
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk) => {
        said += String(chunk);
      });
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, said };
  }

  /** Starts a service that runs until the shell is closed. */
  start(title: string, text: string): void {
    const child = this.#spawn(text);
    const service = { title, child, said: '' };
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk) => {
        service.said += String(chunk);
      });
    this.#services.push(service);
  }

  /** The services that have ended, with the end of their output. */
  get ended(): string[] {
    return this.#services
      .filter(({ child }) => child.exitCode !== null || child.signalCode !== null)
      .map(({ title, said }) => `${title}: ${said.slice(-500)}`);
  }

  #spawn(text: string): ChildProcess {
    return spawn('bash', ['-euo', 'pipefail', '-c', text], {
      cwd: this.directory,
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      // The block gets its own process group, so that a signal reaches all processes that it started.
      detached: true,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#services) {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue;
      const closed = once(child, 'close');
      process.kill(-child.pid, 'SIGTERM');
      await closed;
    }
  }
}
