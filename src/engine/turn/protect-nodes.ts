/** Decides which Nodes must be marked so that other tools do not disrupt them while Refit works on them. */
import type { Assessment } from '../assess/assess.ts';
import { factsOf } from '../gates/types.ts';
import type { NodeAction } from '../model/decision.ts';
import { isFinal, type Stage, type Target, targetsIn } from '../model/rollout.ts';

type Protection = Extract<NodeAction, { kind: 'protect' }>;

/** Returns the marks that this turn must set. */
export function protectionsOf(assessment: Assessment): Protection[] {
  const { snapshot, policy } = assessment;
  if (isFinal(snapshot.rollout) || (policy.coordinate ?? []).length === 0) return [];
  return snapshot.rollout.stages.flatMap((stage) =>
    targetsIn({ stages: [stage] }, 'intended').flatMap(
      (target) => protectionOf(assessment, stage, target) ?? [],
    ),
  );
}

/**
 * Returns the marks that the Node of an intended target lacks; undefined if it lacks no mark. The target is signalled
 * only after the marks are set. If somebody removes a mark later, Refit does not set it again, so that two programs do
 * not overwrite each other repeatedly.
 */
export function protectionOf(
  assessment: Assessment,
  stage: Stage,
  target: Target,
): Protection | undefined {
  const { snapshot, policy } = assessment;
  const { markOwner } = snapshot.plan;
  const { coordinate = [] } = policy;
  const { node: { name, marks = [] } = {}, observation } = factsOf(snapshot, target);
  if (name === undefined || markOwner === undefined) return undefined;
  const starts = assessment.of(stage, target).effect === 'signal';
  if (!starts && observation.kind !== 'sent' && observation.kind !== 'working') return undefined;
  const tools = marks.flatMap(({ tool, isSet, owner }) => {
    const isOurs = owner === markOwner;
    // A plan that owns a mark removes the mark when the plan is over. Therefore the plan that starts the target becomes
    // the owner of a mark that another plan owns.
    const isLacking = isSet ? starts && owner !== undefined && !isOurs : !isOurs;
    return isLacking && coordinate.includes(tool) ? tool : [];
  });
  return tools.length === 0
    ? undefined
    : { kind: 'protect', stage, target, node: name, owner: markOwner, tools };
}
