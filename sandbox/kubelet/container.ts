/** Runs one container as a process whose working directory has the container's mounts as links. */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Pod } from '../../src/kube/resources.ts';
import { type ContainerSpec, fieldOf } from './pod-spec.ts';

export interface Running {
  /** Resolves with the exit code; 128 plus the number of the signal if a signal ended the container. */
  readonly ended: Promise<number>;
  /** Sends the signal to every process that the container started. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

export interface ContainerParts {
  readonly pod: Pod;
  /** The words of the command of the image. */
  readonly program: readonly string[];
  /** The directory of the pod. Each container has a subdirectory and a log in it. */
  readonly directory: string;
  /** The paths of the volumes of the pod, by name. */
  readonly volumes: ReadonlyMap<string, string>;
}

const SIGNALS = { SIGKILL: 137, SIGTERM: 143 };

export async function runContainer(spec: ContainerSpec, parts: ContainerParts): Promise<Running> {
  const { pod, program, directory, volumes } = parts;
  const root = join(directory, spec.name);
  await rm(root, { recursive: true, force: true });
  await mkdir(root, { recursive: true });
  for (const { name, mountPath } of spec.volumeMounts ?? []) {
    const at = join(root, mountPath);
    await mkdir(dirname(at), { recursive: true });
    await symlink(volumes.get(name) ?? '/nonexistent', at);
  }
  const [command = '', ...args] = [...(spec.command ?? program), ...(spec.args ?? [])];
  const values = (spec.env ?? []).map(({ name, value, valueFrom }): [string, string] => [
    name,
    value ?? fieldOf(pod, valueFrom?.fieldRef?.fieldPath ?? ''),
  ]);
  const env = { PATH: process.env['PATH'], HOME: root, ...Object.fromEntries(values) };
  const log = openSync(join(directory, `${spec.name}.log`), 'a');
  // The container has its own process group, so that the kill reaches all its processes.
  const child = spawn(command, args, {
    cwd: root,
    env,
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  const kill: Running['kill'] = (signal) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  const ended = new Promise<number>((resolve) => {
    // A container runtime also reports 127 if the command does not exist.
    child.once('error', () => resolve(127));
    child.once('exit', (code, signal) => {
      kill('SIGKILL');
      resolve(code ?? (signal === 'SIGTERM' ? SIGNALS.SIGTERM : SIGNALS.SIGKILL));
    });
  });
  return { ended, kill };
}
