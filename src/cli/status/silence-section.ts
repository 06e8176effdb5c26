/** Renders whether alerts about the nodes in progress are silenced. */
import { age } from '../phrases.ts';
import type { PlanView } from './view.ts';

/** Returns the section about the silences; without lines if the policy has none, or if the leader has shown nothing. */
export function silenceSection({ silencing }: Pick<PlanView, 'silencing'>, now: number) {
  const lines: string[] = [];
  if (silencing !== undefined) {
    const { isGood, message, since } = silencing;
    const past = since === undefined ? '' : `, for ${age(since, now)}`;
    lines.push(isGood ? `${message}${past}` : `not silenced${past}: ${message}`);
  }
  return { heading: 'alerts', lines };
}
