/** Owns the tests' way to the control plane that global-setup.ts started: typed, and usable from any worker process. */
import { inject } from 'vitest';
import * as credentials from '../../tools/controlplane/kubeconfig.ts';
import { applyManifest, kubectl } from '../../tools/controlplane/kubectl.ts';
import type { RunResult } from '../../tools/controlplane/run.ts';

export type { User } from '../../tools/controlplane/kubeconfig.ts';

/** What a worker process is told; credentials come from files below `directory`. */
export interface ControlPlaneAccess extends credentials.Place {
  readonly port: number;
  /** In PEM. */
  readonly caCertificate: string;
  /** One JSON object for each request that was answered (audit.k8s.io/v1 Event). */
  readonly auditLog: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    controlPlane: ControlPlaneAccess;
  }
}

/** Loopback addresses that the server certificate names beside 127.0.0.1: a proxy on each can play one controller. */
export const CONTROLLER_ADDRESSES: readonly string[] = Array.from({ length: 9 }, (_, i) => `127.0.0.${11 + i}`);

export function controlPlane(): ControlPlaneAccess {
  return inject('controlPlane');
}

/** Path of a kubeconfig for `user`; a control node gets its role on first use. */
export async function kubeconfigFor(user: credentials.User): Promise<string> {
  return await credentials.kubeconfigFor(controlPlane(), user);
}

/** Path of a kubeconfig whose client certificate expired an hour ago. */
export async function expiredKubeconfig(): Promise<string> {
  return await credentials.expiredKubeconfigFor(controlPlane());
}

/** Runs kubectl as `user`; never throws for what the API server refuses. */
export async function kubectlAs(user: credentials.User, args: readonly string[], input?: string): Promise<RunResult> {
  return await kubectl(controlPlane().kubectl, await kubeconfigFor(user), args, input);
}

/** Applies YAML or JSON text as administrator. */
export async function apply(manifest: string): Promise<void> {
  await applyManifest(controlPlane().kubectl, await kubeconfigFor('admin'), manifest);
}
