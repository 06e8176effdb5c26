/**
 * Sequences with Machines of Cluster API, whose Nodes w1 and w2 the extension updates in place. In one lab each Machine is a
 * plan of its own; in the other one both Machines belong to one MachineDeployment, and are one plan.
 */
import { rolloutUidOf } from '../../../src/dialects/capi/plan/machine-groups.ts';
import {
  RECORD_ANNOTATION,
  UPDATE_ANNOTATION,
  updateOn,
} from '../../../src/dialects/capi/plan/machine-update.ts';
import { namespaces, nodes } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { isRecord, parseJson } from '../../../src/util/json.ts';
import { kubernetesPartOf } from '../../../src/versions/release-parts.ts';
import { agents, FROM } from '../../scenes/k0s.ts';
import {
  createMachineNode,
  extension,
  type OwnerOfScene,
  requestUpdate,
} from '../../scenes/machine-scenes.ts';
import { agentStep, crewOperations, startCrew } from './crew.ts';
import { command, type Lab, type Operation, type Scenery } from './lab.ts';
import { lose, upgradeByHand } from './node-operations.ts';
import { policyOperations } from './policies.ts';

const WORKERS = ['w1', 'w2'] as const;
const BY_HAND = 'v1.36.4+k0s.0';

const OWNED = {
  owner: {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    name: 'workers',
    uid: 'uid-of-workers',
  },
  nodes: WORKERS,
};

async function open(scenery: Scenery, owned?: OwnerOfScene): Promise<void> {
  const { stage, truth } = scenery;
  for (const name of ['refit-system', 'fleet'])
    await stage.create(namespaces, { metadata: { name } });
  for (const node of WORKERS) {
    await createMachineNode(stage, node);
    truth.install(node, FROM);
  }
  const crew = await startCrew(scenery, extension);
  await stage.start(agents(agentStep(scenery, crew), truth.runs));
  await stage.waitUntil(60);
  for (const node of WORKERS) await requestUpdate(stage, node, undefined, undefined, owned);
}

function uidIn(text: string | undefined): string | undefined {
  const found = parseJson(text);
  const uid = isRecord(found) ? found['uid'] : undefined;
  return typeof uid === 'string' ? uid : undefined;
}

async function witness({ stage, truth }: Scenery): Promise<void> {
  truth.noticeUpgrades(stage.clock.now());
  for (const { metadata } of (await stage.client.list(nodes)).items) {
    const uid = uidIn(metadata.annotations?.[RECORD_ANNOTATION]);
    if (uid === undefined || uid !== uidIn(metadata.annotations?.[UPDATE_ANNOTATION])) continue;
    const update = updateOn({ metadata });
    if (update) truth.admitted.set(rolloutUidOf(update), 1);
  }
}

/** What people, hosts and Cluster API do to the plan with this name. */
function operationsOn(plan: string, owned?: OwnerOfScene): readonly Operation[] {
  return [
    command('pause', 'pause', '--plan', plan),
    command('resume', 'resume', '--plan', plan),
    command('abort', 'abort', '--plan', plan, '--reason', 'bad release'),
    command('hold w1', 'hold', 'w1', '--reason', 'disk'),
    command('unhold w1', 'unhold', 'w1'),
    command('retry w1', 'retry', 'w1'),
    command('accept the check', 'accept', '--plan', plan, '--check', 'shop', '--reason', 'known'),
    ...crewOperations(WORKERS),
    ...policyOperations('w1'),
    {
      name: 'Cluster API asks for another version of w1',
      act: async ({ stage, truth }) => {
        const uid = `asked-at-${rfc3339(stage.clock.now())}`;
        if (!truth.lost.has('w1')) await requestUpdate(stage, 'w1', BY_HAND, uid, owned);
      },
    },
    lose('w2'),
    upgradeByHand('w2', BY_HAND, kubernetesPartOf(BY_HAND)),
  ];
}

const furtherOn = (owned?: OwnerOfScene): readonly Operation[] => [
  {
    // The command changes the version of the Machine in the management cluster, which then asks for an update.
    name: 'Cluster API asks for the earlier version of w1',
    act: async ({ stage }) =>
      await requestUpdate(stage, 'w1', FROM, 'back-to-the-earlier-version', owned),
  },
];

export const MACHINE_LAB: Lab = {
  dialect: 'capi',
  seeds: [4],
  hasSeveralPlans: true,
  open: async (scenery) => await open(scenery),
  witness,
  operations: operationsOn('capi/fleet/machine-of-w1'),
  furtherOperations: furtherOn(),
  byHand: {
    'refit rollback machine/machine-of-w1 -n fleet':
      'Cluster API asks for the earlier version of w1',
  },
  spelled: (version) => version,
};

export const OWNER_LAB: Lab = {
  ...MACHINE_LAB,
  dialect: 'capi, with an owner',
  seeds: [2],
  hasSeveralPlans: undefined,
  open: async (scenery) => await open(scenery, OWNED),
  operations: operationsOn('capi/fleet/workers', OWNED),
  furtherOperations: furtherOn(OWNED),
};
