/** Announces events in the log and as Events of the plan, of a target or of a Node. */
import { type KubeObject, keyOf, nodes } from '../../kube/resources.ts';
import type { LogFields, Logger } from '../../util/log.ts';
import type { Effects } from '../execute/writes.ts';
import type { ReportedEvent } from '../model/reasons.ts';
import type { TargetEvent } from './events.ts';

export interface AnnouncerParts extends Pick<Effects, 'dialect' | 'world'> {
  readonly log: Logger;
  /** Records an Event about `object`, which is the plan, a Node, or the object of a target. */
  recordEvent(object: KubeObject, announcement: ReportedEvent): void;
}

/**
 * Returns functions that announce events of a plan, of targets and of Nodes. Each event appears in
 * the log and as an Event of the API.
 */
export function createAnnouncer(parts: AnnouncerParts) {
  const { dialect, world } = parts;
  const log = ({ type, reason }: ReportedEvent, fields: LogFields): void =>
    parts.log[type === 'Warning' ? 'warn' : 'info'](reason.message, {
      ...fields,
      reason: reason.code,
    });
  const onPlan = (plan: KubeObject, event: ReportedEvent): void => {
    log(event, { plan: keyOf(plan) });
    parts.recordEvent(plan, event);
  };
  const onTargets = (plan: string, events: readonly TargetEvent[]): void => {
    for (const { stage, target, ...event } of events) {
      const object = dialect.objectOf(stage, target, world);
      if (object) parts.recordEvent(object, event);
      log(event, { plan, node: target.name });
    }
  };
  const onNodes = (events: readonly (ReportedEvent & { readonly node: string })[]): void => {
    for (const { node, ...event } of events) {
      const object = world.get(nodes, node);
      if (object) parts.recordEvent(object, event);
      log(event, { node });
    }
  };
  return { onPlan, onTargets, onNodes };
}
