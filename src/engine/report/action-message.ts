/** Returns the log message about a node action that was carried out. */
import type { Assessment } from '../assess/assess.ts';
import { factsOf } from '../gates/types.ts';
import type { NodeAction } from '../model/decision.ts';

const MESSAGES = {
  cordon: 'node cordoned',
  drain: 'drain started',
  taint: 'node tainted',
  'keep-report': 'success of the attempt kept on the node',
  protect: 'node marked, so that other tools leave it alone',
  announce: 'lifecycle conditions of the node written',
  prefetch: 'asked to download ahead of its turn',
  'check-downloads': 'agent asked whether it can download',
  'end-prefetch': 'request to download ahead of its turn ended',
  cancel: 'signal cancelled',
};

/** Returns the message for a node action. The log adds the names of the plan and the node. */
export function actionMessage(assessment: Assessment, nodeAction: NodeAction): string {
  if (nodeAction.kind === 'clean-up')
    return nodeAction.cordon ? 'node uncordoned' : 'taint removed from node';
  if (nodeAction.kind !== 'acknowledge') return MESSAGES[nodeAction.kind];
  const { stage, target, node, uncordon } = nodeAction;
  const { agent } = factsOf(assessment.snapshot, target);
  const goesOn = agent === undefined ? 'its work may continue' : 'its agent may continue';
  if (uncordon === undefined) return `${assessment.of(stage, target).reason.message}; ${goesOn}`;
  // Without an agent, nothing is left to do on the node after its uncordon.
  if (node !== undefined)
    return agent === undefined ? 'node uncordoned' : `node uncordoned; ${goesOn}`;
  return `${target.name} has no Node to uncordon; ${goesOn}`;
}
