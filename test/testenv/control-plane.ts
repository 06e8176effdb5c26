/** The tests' way to the real control plane that their file has borrowed, from any worker process. */
import { once } from 'node:events';
import { appendFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { expect, inject } from 'vitest';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { applyManifest } from '../../tools/controlplane/apply.ts';
import { documentedRoles } from '../../tools/controlplane/control-plane.ts';
import * as credentials from '../../tools/controlplane/kubeconfig.ts';
import { kubectl } from '../../tools/controlplane/kubectl.ts';
import type { RunResult } from '../../tools/controlplane/run.ts';

export type { User } from '../../tools/controlplane/kubeconfig.ts';

/** What a test file gets; credentials come from files below `directory`. */
export interface ControlPlaneAccess extends credentials.Place {
  readonly port: number;
  /** In PEM. */
  readonly caCertificate: string;
  /** One JSON object for each request that was answered (audit.k8s.io/v1 Event). */
  readonly auditLog: string;
}

/** The pool's answer: a control plane, or why none could be started. */
export type Loan = { readonly access: ControlPlaneAccess } | { readonly failure: string };

export interface RecordedLoan {
  /** Path of the test file. */
  readonly file: string;
  readonly auditLog: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the pool; undefined where tests are only listed. */
    controlPlanes: string | undefined;
    /** File with one `RecordedLoan` in each line. */
    loans: string;
  }
}

/** Loopback addresses that the server certificate names beside 127.0.0.1: a proxy on each can play one controller. */
export const CONTROLLER_ADDRESSES: readonly string[] = Array.from(
  { length: 9 },
  (_, i) => `127.0.0.${11 + i}`,
);

/**
 * For the environment of Go's programs. Several run on few cores, where memory is left: one thread each, and garbage is
 * collected less often, save a fifth of all CPU.
 */
export const SPARING = { GOMAXPROCS: '1', GOGC: '400' } as const;

let borrowed: ControlPlaneAccess | undefined;

/** Waits for a control plane that no other process uses, unless this one has one, and records that the next file uses it. */
export async function borrowControlPlane(): Promise<void> {
  const pool = inject('controlPlanes');
  if (pool === undefined) return;
  borrowed ??= await borrow(pool);
  const recorded: RecordedLoan = {
    file: expect.getState().testPath ?? '',
    auditLog: borrowed.auditLog,
  };
  await appendFile(inject('loans'), `${JSON.stringify(recorded)}\n`);
}

/** The loan ends with this process. */
async function borrow(pool: string): Promise<ControlPlaneAccess> {
  const connection = connect(pool);
  const [line] = (await once(createInterface({ input: connection }), 'line')) as [string];
  connection.unref();
  const loan = JSON.parse(line) as Loan;
  if ('failure' in loan) throw new Error(loan.failure);
  return loan.access;
}

export function controlPlane(): ControlPlaneAccess {
  if (borrowed === undefined)
    throw new Error('this test project has no control plane: see vitest.config.ts');
  return borrowed;
}

/** Path of a kubeconfig for `user`; a control node gets its role on first use. */
export async function kubeconfigFor(user: credentials.User): Promise<string> {
  return await credentials.kubeconfigFor(controlPlane(), user);
}

/** Path of a kubeconfig whose client certificate expired an hour ago. */
export async function expiredKubeconfig(): Promise<string> {
  return await credentials.expiredKubeconfigFor(controlPlane());
}

/**
 * What kubectl is told to apply its input, where nothing depends on the way. For the other way it reads the schema of all
 * kinds each time, which takes it 400 ms of CPU instead of 90, and the API server as long to write it after a new definition.
 */
export const ON_SERVER = ['apply', '--server-side', '--force-conflicts', '-f', '-'];

/** Runs kubectl as `user`; never throws for what the API server refuses. */
export async function kubectlAs(
  user: credentials.User,
  args: readonly string[],
  input?: string,
): Promise<RunResult> {
  return await kubectl(controlPlane().kubectl, await kubeconfigFor(user), args, input);
}

/** Applies YAML or JSON text as administrator. */
export async function apply(manifest: string): Promise<void> {
  await applyManifest(await kubeconfigFor('admin'), manifest);
}

/** Waits until the API server serves all kinds of `deploy/crds/`, as an administrator applies them; most often it does. */
export async function installKinds(): Promise<void> {
  using client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await installDefinitions(client, systemClock);
}

/** For the next file on this control plane, after one that removed roles or their namespaces. */
export async function restoreRoles(): Promise<void> {
  await apply(await documentedRoles());
}
