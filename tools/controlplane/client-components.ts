/** Starts the components that are clients of the API server: their users, command lines and readiness checks. */
import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { parseVersion } from '../../src/util/version.ts';
import { controllerManagerArguments, kwokArguments, schedulerArguments } from './arguments.ts';
import { type Subject, validFrom } from './certs.ts';
import { KUBERNETES_VERSION } from './components.ts';
import { type Place, writeKubeconfig } from './kubeconfig.ts';
import { freePort } from './ports.ts';
import type { Probe } from './probe.ts';
import { type Process, startProcess, stopAll } from './process.ts';

export type ClientComponent = 'kube-controller-manager' | 'kube-scheduler' | 'kwok';

interface Client {
  readonly subject: Subject;
  readonly args: (
    directory: string,
    kubeconfig: string,
    port: number,
    certificateLife?: string,
  ) => string[];
  /** Ready when all of these URLs answer 200. */
  readonly ready: (port: number, apiServer: string) => string[];
}

/** kube-scheduler has `/readyz` since v1.31. */
const SCHEDULER_PROBE = (parseVersion(KUBERNETES_VERSION)?.minor ?? 0) < 31 ? 'healthz' : 'readyz';

const CLIENTS: Readonly<Record<ClientComponent, Client>> = {
  'kube-controller-manager': {
    subject: { commonName: 'system:kube-controller-manager' },
    args: controllerManagerArguments,
    // A namespace refuses every pod until its service account exists.
    ready: (port, apiServer) => [
      `https://127.0.0.1:${port}/healthz`,
      `${apiServer}/api/v1/namespaces/default/serviceaccounts/default`,
    ],
  },
  'kube-scheduler': {
    subject: { commonName: 'system:kube-scheduler' },
    args: schedulerArguments,
    ready: (port) => [`https://127.0.0.1:${port}/${SCHEDULER_PROBE}`],
  },
  kwok: {
    // kwok simulates the kubelets of all nodes; a role for one node does not allow that.
    subject: { commonName: 'kwok', organization: 'system:masters' },
    args: (_directory, kubeconfig, port) => kwokArguments(kubeconfig, port),
    ready: (port) => [`http://127.0.0.1:${port}/healthz`],
  },
};

export interface ClientOptions<C extends ClientComponent> {
  readonly binaries: Readonly<Record<C, string>>;
  readonly place: Place;
  readonly probe: Probe;
  readonly certificateLife?: string | undefined;
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly abort?: AbortSignal | undefined;
}

/**
 * Resolves when all components are ready. If a component is not ready in time, stops all of them and throws
 * REFIT_TESTENV.
 */
export async function startClients<C extends ClientComponent>(
  names: readonly C[],
  options: ClientOptions<C>,
): Promise<Process[]> {
  const starting = await Promise.allSettled(
    names.map(async (name) => await startClient(name, options)),
  );
  const running = starting.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const failure = starting.find((start) => start.status === 'rejected');
  if (failure === undefined) return running;
  await stopAll(running);
  throw failure.reason;
}

async function startClient<C extends ClientComponent>(
  name: C,
  options: ClientOptions<C>,
): Promise<Process> {
  const { binaries, place, probe, certificateLife, environment, abort } = options;
  const { subject, args, ready } = CLIENTS[name];
  const { directory, url } = place;
  const port = await freePort();
  const path = join(directory, 'kubeconfigs', `${name}.yaml`);
  const kubeconfig = await writeKubeconfig(place, path, subject, validFrom(systemClock.now()));
  return await startProcess({
    name,
    command: binaries[name],
    args: args(directory, kubeconfig, port, certificateLife),
    environment,
    directory,
    ready: async () => (await Promise.all(ready(port, url).map(probe))).every(Boolean),
    clock: systemClock,
    abort,
  });
}
