/** The Nodes on which the tests of the chart place its pods. */
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';

const ROLE = 'node-role.kubernetes.io/control-plane';

/** Returns two Nodes that only the scheduler uses. kwok simulates their kubelets. */
export function chartNodes(): object[] {
  const taints = [{ key: ROLE, effect: 'NoSchedule' }];
  return [chartNode('chart-cp', { [ROLE]: '' }, { taints }), chartNode('chart-worker', {}, {})];
}

function chartNode(name: string, labels: Readonly<Record<string, string>>, spec: object): object {
  const { apiVersion, kind, metadata } = simulatedNode(name);
  return {
    apiVersion,
    kind,
    metadata: { ...metadata, labels: { ...metadata.labels, pool: 'chart', ...labels } },
    spec,
  };
}
