/** Says what to do about the targets that a plan has left out. */
import { listed } from '../../util/phrases.ts';
import { planFlag } from '../plan-runners.ts';
import type { ShownPlan, TargetJson } from './json-form.ts';
import * as sentences from './sentences.ts';

/** The most names in a list. */
const FEW = 8;

/** Returns what to do about the targets that the plan has skipped; nothing for an aborted plan, which starts no target any more. */
export function leftOutAdvice(plan: ShownPlan): string[] {
  const skipped = sentences.targetsOf(plan).filter(({ phase }) => phase === 'skipped');
  if (plan.abort !== undefined || plan.startsAgain === true) return [];
  const pinned = skipped.filter((target) => target.pinned !== undefined);
  const others = skipped.filter((target) => target.pinned === undefined);
  return [...retryAdvice(plan, others), ...pinAdvice(plan, pinned)];
}

function retryAdvice(plan: ShownPlan, skipped: readonly TargetJson[]): string[] {
  if (skipped.length === 0) return [];
  if (plan.phase === 'edited' && plan.texts.advice.retry !== undefined)
    return [
      `Left out: ${namesOf(skipped)}. With refit retry --skipped${planFlag(plan)}, only ${skipped.length === 1 ? 'this node gets' : 'these nodes get'} what the edited plan asks for. The nodes that are done keep what they have.`,
    ];
  const held = skipped.filter((target) => target.held !== undefined);
  const first = held.length > 0 ? 'run refit unhold for each held node, then ' : '';
  return [
    `Left out: ${namesOf(skipped)}. To upgrade ${skipped.length === 1 ? 'it' : 'them'}, ${first}${againFor(plan)}`,
  ];
}

/** A retry of a pinned target alone would only leave it out once more. */
function pinAdvice(plan: ShownPlan, pinned: readonly TargetJson[]): string[] {
  if (pinned.length === 0) return [];
  const it = pinned.length === 1 ? 'it' : 'them';
  const its = pinned.length === 1 ? 'its pin' : 'their pins';
  return [
    `Left out: ${namesOf(pinned)}, because of ${its}. Nothing is to be done if the pin is right. To upgrade ${it}, first remove or change ${its} in UpgradePolicy ${plan.policy}, then ${againFor(plan)}`,
  ];
}

function againFor(plan: ShownPlan): string {
  const { advice } = plan.texts;
  return advice.retry === undefined
    ? advice.again(plan)
    : `run: refit retry --skipped${planFlag(plan)}`;
}

function namesOf(targets: readonly TargetJson[]): string {
  return listed([...new Set(targets.map(({ name }) => name))], FEW);
}
