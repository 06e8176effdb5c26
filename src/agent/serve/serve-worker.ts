/** Owns everything that works on a worker: its Node carries all signals. */
import { nodes } from '../../kube/resources.ts';
import { keepStamped } from '../cordoning/keep-stamped.ts';
import { LeaseMark } from '../cordoning/lease-mark.ts';
import type { HostParts } from './host-parts.ts';
import { createObjectAgent, createOwnObject } from './object-agent.ts';

/** Works until `stop` aborts; rejects only where the journal cannot be read. */
export async function serveWorker(host: HostParts, name: string, stop: AbortSignal): Promise<void> {
  const { client, paths } = host;
  const node = createOwnObject(host, nodes, name);
  const mark = new LeaseMark(client);
  const agent = createObjectAgent(host, {
    object: node,
    journal: paths.journal,
    accepts: ['k0supdate', 'airgapupdate'],
    nodeName: () => name,
    mark,
  });
  const stamp = async (signal: AbortSignal): Promise<void> => await mark.set(name, signal);
  await Promise.all([agent.run(stop), keepStamped({ ...host, node, stamp }, stop)]);
}
