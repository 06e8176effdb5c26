/** Lists the tools that Refit can coordinate with. */
import type { Node } from '../kube/resources.ts';
import { onceForEach } from '../util/memo.ts';
import { clusterAutoscaler } from './cluster-autoscaler.ts';
import { gpuOperator } from './gpu-operator.ts';
import { karpenter } from './karpenter.ts';
import { kured } from './kured.ts';
import type { OtherWork, Tool } from './tool.ts';

export const TOOLS: readonly Tool[] = [clusterAutoscaler, karpenter, kured, gpuOperator];

/** Returns the work of all known tools on the Node, if the Node itself shows this work. */
export const otherWorkOn = onceForEach((node: Node): readonly OtherWork[] =>
  TOOLS.flatMap(({ name, workOn }) => {
    const work = workOn?.(node);
    return work === undefined ? [] : [{ tool: name, ...work }];
  }),
);
