/** Owns everything that works on a worker: its Node carries all signals. */
import { nodes } from '../../kube/resources.ts';
import { keepMarked } from '../maintenance/keep-marked.ts';
import { LeaseMark } from '../maintenance/lease-mark.ts';
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
  const stamp = async (abort: AbortSignal): Promise<void> => await mark.set(name, abort);
  await Promise.all([agent.run(stop), keepMarked({ ...host, node, stamp }, stop)]);
}
