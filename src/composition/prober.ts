/** Composes what asks the API servers and looks ahead at drains. No watch shows these answers. */
import { drainPreviewer } from '../drain/drain-preview.ts';
import { type AskReadyz, askControlPlane } from '../engine/snapshot/api-server-health.ts';
import type { Prober } from '../engine/snapshot/probes.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ClusterConfig } from '../kube/config/cluster-config.ts';
import { askerOf } from '../kube/transport/readyz.ts';

interface ProberParts {
  readonly config: ClusterConfig;
  readonly apiPort?: number | undefined;
  readonly askThrough?: ((ask: AskReadyz) => AskReadyz) | undefined;
  readonly writer: KubeClient;
  readonly drainsNodes?: boolean | undefined;
  readonly abort: AbortSignal;
}

const READYZ_TIMEOUT_MS = 5000;

export function proberOf({
  config,
  apiPort,
  askThrough,
  writer,
  drainsNodes = true,
  abort,
}: ProberParts): Prober {
  const ask = askerOf(config);
  return {
    askControlPlane: async (endpoints, stop) => {
      const options = { port: apiPort, deadlineMs: READYZ_TIMEOUT_MS, abort: stop };
      const direct: AskReadyz = async (host) => await ask(host, options);
      return await askControlPlane(endpoints, askThrough?.(direct) ?? direct);
    },
    ...(drainsNodes ? { previewDrains: (stop = abort) => drainPreviewer(writer, stop) } : {}),
  };
}
