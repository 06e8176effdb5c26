/** Runs the agents of a controller: one for its ControlNode, and one for its Node, which gets the airgap bundles. */
import { nodes } from '../../kube/resources.ts';
import { type ControlNode, controlNodes, nodeNameOf } from '../../signal/names.ts';
import { LeaseDelegation } from '../maintenance/lease-delegation.ts';
import { OwnObject } from '../object/own-object.ts';
import { describeController } from '../registration/describe-controller.ts';
import { kubeletName } from '../registration/host-name.ts';
import { keepRegistered } from '../registration/keep-registered.ts';
import { askService } from '../service/trusted-service.ts';
import { announce, createObjectAgent, type HostParts, STATUS_TIMEOUT_MS, serveNode } from './object-agent.ts';
import { workForValue } from './work-for-value.ts';

/** Works until `stop` aborts; rejects only when a journal cannot be read. */
export async function serveController(host: HostParts, name: string, stop: AbortSignal): Promise<void> {
  const object = new OwnObject({ ...host, resource: controlNodes, name });
  const nodeName = (): string | undefined => nodeNameOf(newestOf(object));
  const delegation = new LeaseDelegation(host.client);
  const agent = createObjectAgent(host, {
    object,
    journal: host.paths.journal,
    accepts: ['k0supdate'],
    nodeName: () => {
      if (!object.isKnown) throw new Error(`ControlNode ${name} has not been read yet`);
      return nodeName();
    },
    delegation,
  });
  const node = { current: nodeName, onChange: (listener: () => void) => object.onChange(listener) };
  await Promise.all([
    agent.run(stop),
    register(host, object, name, stop),
    announce(host, controlNodes, object, stop),
    workForValue(node, async (own, abort) => await serveOwnNode(host, own, delegation, abort), stop),
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
      askStatus: async (socket) => await askService(socket, STATUS_TIMEOUT_MS),
      log,
    });
  await keepRegistered({ ...host, object, describe }, stop);
}

/** Original leaders send airgap bundles only to Nodes, also on hosts whose updates go to a ControlNode. */
async function serveOwnNode(
  host: HostParts,
  name: string,
  delegation: LeaseDelegation,
  stop: AbortSignal,
): Promise<void> {
  const log = host.log.child({ for: `Node ${name}` });
  const object = new OwnObject({ ...host, resource: nodes, name });
  const options = { object, journal: host.paths.airgapJournal, accepts: ['airgapupdate'], delegation } as const;
  await serveNode({ ...host, log }, name, options, stop);
}

function newestOf(object: OwnObject): ControlNode | undefined {
  return object.newest;
}
