/** Selects the Events of Refit about a run, which anybody who may write Events could imitate. */
import type { Event } from '../../kube/resources.ts';
import { printable } from '../../util/printable.ts';

export interface ReportEvent {
  readonly at: string;
  /** The name of the object to which the Event refers: the plan, or a node. */
  readonly about: string;
  readonly reason: string;
  readonly message: string;
  /** How often it happened in this run; absent if the Event also counts what happened before this run. */
  readonly count?: number;
}

const MOST_EVENTS = 200;

export interface EventsAbout {
  readonly uid: string | undefined;
  /** The namespace of the plan; undefined if the kind of the plan is cluster-scoped. */
  readonly namespace: string | undefined;
  readonly nodes: readonly { readonly name: string }[];
  readonly from: string;
}

/** Returns the Events about the plan or about one of its nodes that Refit wrote after the run had started. */
export function eventsOfRun(events: readonly Event[], about: EventsAbout): ReportEvent[] {
  const { uid, namespace, nodes, from } = about;
  // Each Event must be in the namespace to which Refit writes Events about such an object. For a Node, this is
  // `default`. A user who may write to another namespace could create an Event there about the same object, with the
  // texts of Refit.
  const placeOf = ({ kind }: Event['involvedObject']): string =>
    kind === 'Node' ? 'default' : (namespace ?? 'default');
  const names = new Set(nodes.map(({ name }) => name));
  const began = Date.parse(from);
  return events
    .filter(({ metadata, involvedObject }) => metadata.namespace === placeOf(involvedObject))
    .filter(({ source, reportingComponent }) =>
      (source?.component ?? reportingComponent ?? '').startsWith('refit'),
    )
    .filter(
      ({ involvedObject }) =>
        (uid !== undefined && involvedObject.uid === uid) || names.has(involvedObject.name ?? ''),
    )
    .filter((event) => timeOf(event) >= began)
    .toSorted((a, b) => timeOf(a) - timeOf(b))
    .slice(-MOST_EVENTS)
    .map((event) => ({
      at: event.lastTimestamp ?? event.metadata.creationTimestamp ?? '',
      about: printable(event.involvedObject.name ?? ''),
      reason: printable(event.reason ?? ''),
      message: printable(event.message ?? ''),
      ...(Date.parse(event.firstTimestamp ?? '') < began ? {} : { count: event.count ?? 1 }),
    }));
}

function timeOf({ lastTimestamp, metadata }: Event): number {
  return Date.parse(lastTimestamp ?? metadata.creationTimestamp ?? '');
}
