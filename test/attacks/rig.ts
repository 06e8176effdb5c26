/** The parts that all attacks use: a cluster, nodes with a real agent, and an unprivileged attacker on the same host. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { startDownloadServer } from '../../sandbox/hosts/download-server.ts';
import { type MemoryCluster, startMemoryCluster } from '../agent/memory-cluster.ts';
import { NEW, Rig, type RigOptions } from '../agent/rig.ts';
import { testUnless } from '../support/left-out.ts';

/** User and group `nobody`: no rights on this host. */
export const NOBODY = 65_534;

let cluster: MemoryCluster | undefined;
let nodes = 0;

/** Call this function once, at the top of a test file. Returns a function that returns the cluster. */
export function useCluster(): () => MemoryCluster {
  beforeAll(async () => {
    cluster = await startMemoryCluster();
  });
  afterAll(async () => await cluster?.stop());
  return theCluster;
}

function theCluster(): MemoryCluster {
  if (cluster === undefined) throw new Error('call useCluster() first');
  return cluster;
}

/** Starts a node with a service of root and with a download server. Start its agent with `startAgent`. */
export async function startNode(options: Partial<RigOptions> = {}): Promise<Rig> {
  const { admin, kubeconfig } = theCluster();
  return await Rig.start({
    name: `attacked${process.pid}-${++nodes}`,
    admin,
    kubeconfig,
    ...options,
  });
}

const isRoot = process.getuid?.() === 0;

/** A test that mounts a disk; skipped unless root runs it. */
export const attackOnDisk = testUnless(isRoot ? undefined : 'only root may mount a disk');

/**
 * Returns what the agent reports after the trial run of a version that is this script. The script may contain the path
 * of its own directory.
 */
export async function reasonAfter(
  script: string | ((directory: string) => string),
  {
    programs = {},
    ...options
  }: Partial<RigOptions> & { readonly programs?: Readonly<Record<string, Buffer>> } = {},
): Promise<string> {
  await using node = await startNode(options);
  const directory = await mkdtemp(join(tmpdir(), 'refit-payload-'));
  const path = join(directory, 'payload');
  const text = `#!/bin/sh\n${typeof script === 'string' ? script : script(directory)}\n`;
  await chmod(directory, 0o755);
  for (const [name, program] of Object.entries(programs))
    await writeFile(join(directory, name), program, { mode: 0o755 });
  await writeFile(path, text);
  const server = await startDownloadServer({ files: { '/payload': path } });
  try {
    node.startAgent();
    const sha256 = createHash('sha256').update(text).digest('hex');
    await node.send('/new', NEW, { url: `${server.url}/payload`, sha256 });
    await node.end();
    return (await node.report())?.reason ?? '';
  } finally {
    await server.stop();
    await rm(directory, { recursive: true });
  }
}

/** A test with a process of the user `nobody`. Skipped if the user is not root. */
export const attackAsNobody = testUnless(
  isRoot ? undefined : 'only root may start processes of other users',
);

/**
 * A user without rights, with its own directory and its own processes. The processes end when the attacker is disposed.
 */
export class Attacker implements AsyncDisposable {
  readonly directory: string;
  readonly #children: ChildProcess[] = [];

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async arrive(): Promise<Attacker> {
    const directory = await mkdtemp(join(tmpdir(), 'refit-attacker-'));
    await chown(directory, NOBODY, NOBODY);
    await chmod(directory, 0o755);
    return new Attacker(directory);
  }

  /** Starts a program as `nobody`. Resolves with its PID when the program has written to standard output. */
  async run(program: string, ...args: readonly string[]): Promise<number> {
    const child = spawn(program, args, {
      uid: NOBODY,
      gid: NOBODY,
      cwd: this.directory,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#children.push(child);
    await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
    if (child.pid === undefined || child.exitCode !== null)
      throw new Error(`${program} ended with ${child.exitCode}`);
    return child.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Writes a kubeconfig for a server of any kind; returns its path. */
export async function kubeconfigOf(directory: string, server: string, user = {}): Promise<string> {
  const path = join(directory, 'kubeconfig.json');
  const lists = {
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  };
  await writeFile(
    path,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', ...lists }),
  );
  return path;
}
