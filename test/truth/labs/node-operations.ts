/** Operations on Nodes, which work in every dialect. */
import { nodes } from '../../../src/kube/resources.ts';
import type { Operation } from './lab.ts';

const STATUS = { type: 'merge', subresource: 'status' } as const;

/** Returns the operation that removes the Node from the cluster. */
export function lose(node: string): Operation {
  return {
    name: `${node} is lost`,
    act: async ({ stage, truth }) => {
      if (truth.lost.has(node)) return;
      await stage.client.delete(nodes, node);
      truth.lost.add(node);
    },
  };
}

/** Returns the operation by which somebody installs a version on the host. Its kubelet may report only a part of the version. */
export function upgradeByHand(node: string, version: string, kubeletVersion = version): Operation {
  return {
    name: `${node} is upgraded by hand`,
    act: async ({ stage, truth }) => {
      if (truth.lost.has(node)) return;
      truth.install(node, version);
      await stage.client.patch(nodes, node, { status: { nodeInfo: { kubeletVersion } } }, STATUS);
    },
  };
}
