/** Owns everything that works on a controller: its ControlNode carries updates, and airgap bundles come by its Node, if it is one. */
import { nodes } from '../../kube/resources.ts';
import { type ControlNode, controlNodes } from '../../signal/names.ts';
import { nodeNameOf } from '../../signal/node-of-controller.ts';
import { keepMarked } from '../maintenance/keep-marked.ts';
import { LeaseMark } from '../maintenance/lease-mark.ts';
import type { OwnObject } from '../object/own-object.ts';
import { describeController } from '../registration/describe-controller.ts';
import { kubeletName } from '../registration/host-name.ts';
import { keepRegistered } from '../registration/keep-registered.ts';
import { askStatus } from '../service/status-socket.ts';
import { workForValue } from '../work-for-value.ts';
import type { HostParts } from './host-parts.ts';
import { createObjectAgent, createOwnObject } from './object-agent.ts';

const STATUS_TIMEOUT_MS = 5_000;

/** Works until `stop` aborts; rejects only where a journal cannot be read. */
export async function serveController(host: HostParts, name: string, stop: AbortSignal): Promise<void> {
  const object = createOwnObject(host, controlNodes, name);
  const nodeName = (): string | undefined => nodeNameOf(newestOf(object));
  const mark = new LeaseMark(host.client);
  const agent = createObjectAgent(host, {
    object,
    journal: host.paths.journal,
    accepts: ['k0supdate'],
    nodeName: () => {
      if (!object.isKnown) throw new Error(`ControlNode ${name} is not known yet`);
      return nodeName();
    },
    mark,
  });
  const node = { current: nodeName, onChange: (listener: () => void) => object.onChange(listener) };
  await Promise.all([
    agent.run(stop),
    register(host, object, name, stop),
    workForValue(node, async (own, abort) => await serveOwnNode(host, own, mark, abort), stop),
  ]);
}

async function register(host: HostParts, object: OwnObject, name: string, stop: AbortSignal): Promise<void> {
  const { options, places, log } = host;
  const describe = async (): ReturnType<typeof describeController> =>
    await describeController({
      name,
      flags: options.controller,
      statusSocket: () => places.current.statusSocket,
      kubeletName: () => kubeletName(places.current),
      hasAddress: () => newestOf(object)?.status?.addresses?.some(({ type }) => type === 'InternalIP') ?? false,
      askStatus: async (socket) => await askStatus(socket, STATUS_TIMEOUT_MS),
      log,
    });
  await keepRegistered({ ...host, object, describe }, stop);
}

/** Original leaders send airgap bundles to Nodes only, also where the updates of the same host go to its ControlNode. */
async function serveOwnNode(host: HostParts, name: string, mark: LeaseMark, stop: AbortSignal): Promise<void> {
  const { paths } = host;
  const log = host.log.child({ for: `Node ${name}` });
  const node = createOwnObject({ ...host, log }, nodes, name);
  const agent = createObjectAgent(
    { ...host, log },
    { object: node, journal: paths.airgapJournal, accepts: ['airgapupdate'], nodeName: () => name, mark },
  );
  const stamp = async (abort: AbortSignal): Promise<void> => await mark.set(name, abort);
  await Promise.all([agent.run(stop), keepMarked({ ...host, log, node, stamp }, stop)]);
}

function newestOf(object: OwnObject): ControlNode | undefined {
  return object.newest;
}
