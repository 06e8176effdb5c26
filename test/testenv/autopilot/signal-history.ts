/** Records every version of the ControlNodes and of the leader's lease that a watch shows. */
import type { KubeClient } from '../../../src/kube/client.ts';
import { type KubeObject, type Lease, leases } from '../../../src/kube/resources.ts';
import { createInformer } from '../../../src/kube/watch/informer.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import {
  CENTRAL_CORDONING_LABEL,
  controlNodes,
  SIGNAL_STATUSES,
} from '../../../src/signal/names.ts';

/** The status in one version of an object; 'none' without a signal, 'sent' for a signal without a status. */
interface Version {
  readonly status: string;
  /** RFC 3339; '' without a status. */
  readonly timestamp: string;
}

export interface History {
  /** All versions in order, by name of the ControlNode. */
  readonly versions: ReadonlyMap<string, readonly Version[]>;
  /** All pairs of holder and label of the leader's lease; the label may be undefined. */
  readonly leaders: readonly { readonly holder: string; readonly label: string | undefined }[];
}

/** Records until the result is disposed. */
export async function recordHistory(client: KubeClient): Promise<History & AsyncDisposable> {
  const stop = new AbortController();
  const versions = new Map<string, Version[]>();
  const leaders: { holder: string; label: string | undefined }[] = [];
  const objects = createInformer(client, controlNodes);
  const note = ({ metadata: { name, annotations } }: KubeObject): void => {
    const data = decodeSignal(annotations);
    const status = data === undefined ? 'none' : (data.status?.status ?? 'sent');
    const all = versions.get(name) ?? [];
    versions.set(name, [...all, { status, timestamp: data?.status?.timestamp ?? '' }]);
  };
  objects.addHandler({ added: note, updated: note });
  const lease = createInformer<Lease>(client, leases, {
    namespace: 'k0s-autopilot',
    fieldSelector: 'metadata.name=k0s-autopilot-controller',
  });
  const lead = ({ metadata: { labels }, spec }: Lease): void => {
    leaders.push({ holder: spec?.holderIdentity ?? '', label: labels?.[CENTRAL_CORDONING_LABEL] });
  };
  lease.addHandler({ added: lead, updated: lead });
  const runs = [objects.run(stop.signal), lease.run(stop.signal)];
  await Promise.all([objects.whenSynced(stop.signal), lease.whenSynced(stop.signal)]);
  const dispose = async (): Promise<void> => {
    stop.abort();
    await Promise.all(runs);
  };
  return { versions, leaders, [Symbol.asyncDispose]: dispose };
}

const ORDER: readonly string[] = ['none', 'sent', ...SIGNAL_STATUSES];

/** Returns the position of the status in the order of an update; -1 for a status that no update should show. */
export function stageOf(status: string): number {
  return ORDER.indexOf(status);
}
