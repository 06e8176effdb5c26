/** Makes what the checks read from the connection to a cluster. */
import { readingAsker } from '../health/ask-check.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ClusterConfig } from '../kube/config/cluster-config.ts';
import { nodes } from '../kube/resources.ts';
import type { Clock } from '../util/clock.ts';
import { serversOf } from './api-servers.ts';
import { type Asking, askingOf } from './asking.ts';
import type { ReadyContext } from './context.ts';

export interface ClusterParts
  extends Pick<ReadyContext, 'dialects' | 'policyChecks' | 'groundChecks'> {
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  /** The namespace of the Secrets that policies name. */
  readonly namespace: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The port of every API server. The default is the port in the EndpointSlices. */
  readonly apiPort?: number | undefined;
  readonly readsHelmReleases?: boolean | undefined;
  /** Called with the error of each question that has no answer, unless the object does not exist. */
  readonly onUnanswered?: (error: unknown) => void;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/** Returns what the checks of one cluster read, whatever the version is to which the cluster is to go. */
export function clusterContext(parts: ClusterParts): Omit<ReadyContext, 'to'> {
  const { config, client, apiPort, clock, abort, dialects, policyChecks, groundChecks } = parts;
  const { readsHelmReleases = false, onUnanswered } = parts;
  const asking = askingOf(client, abort, (error) => {
    onUnanswered?.(error);
    return false;
  });
  return {
    ...asking,
    now: clock.now(),
    readsHelmReleases,
    dialects,
    policyChecks,
    groundChecks,
    askServers: serversOf({ config, asking, apiPort, abort }),
    askCheck: checkAskerFor(parts, asking),
    abortIfAsked: () => abort.throwIfAborted(),
  };
}

/** Returns a function that makes one health check for all nodes. */
function checkAskerFor(
  { client, clock, namespace, environment, abort }: ClusterParts,
  { list }: Asking,
): ReadyContext['askCheck'] {
  const ask = readingAsker({ client, clock, namespace, environment });
  return async (check) => {
    const asked = await list(nodes);
    const all = asked.kind === 'answer' ? asked.value : [];
    return await ask(check, new Set(all.map(({ metadata }) => metadata.name)), abort);
  };
}
