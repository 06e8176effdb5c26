/** The answers of the gates about the components of the control plane, as rows for the table of all gates. */

import { componentsWork, componentsWorkAfter } from '../../../src/engine/gates/components-work.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import { answered, NEVER, UNASKED } from '../../../src/engine/model/asked.ts';
import type { Role } from '../../../src/engine/model/rollout.ts';
import type { ComponentState } from '../../../src/health/component-monitor.ts';
import { MINUTE, T0 } from '../clock/times.ts';
import { goingBack, input } from './gate-inputs.ts';
import { withParts } from './parts.ts';

const WORKING: ComponentState = {
  name: 'kube-scheduler',
  state: 'working',
  renewedAt: T0 - 1000,
  silentMs: 1000,
};
const STOPPED: ComponentState = {
  name: 'kube-controller-manager',
  state: 'stopped',
  silentMs: 45_000,
};
const UNCLEAR: ComponentState = { ...STOPPED, state: 'unclear', silentMs: 0 };
const STOPS =
  'wait ComponentNotWorking: kube-controller-manager does not work: nobody has renewed its Lease kube-system/kube-controller-manager for 45 s';
const UNKNOWN =
  'wait ComponentNotWorking: it is not known yet whether kube-controller-manager works: Refit waits until its Lease kube-system/kube-controller-manager is renewed';
const NOT_YET =
  'wait ComponentNotWorking: it is not known yet whether kube-scheduler works: Refit waits until its Lease kube-system/kube-scheduler is renewed';

const inputOf = (
  role: Role,
  components: GateInput['cluster']['components'],
  watchedMs = 0,
): GateInput => withParts(input(role, { watchedMs }), { cluster: { components } });

const BEFORE: readonly [string, GateInput['cluster']['components'], string][] = [
  ['nobody looks at the components', NEVER, 'pass'],
  ['no component has a Lease', answered({ states: [] }), 'pass'],
  [
    'the Leases may not be read',
    answered({ states: [], problem: 'denied', isForbidden: true }),
    'pass',
  ],
  [
    'no API server answers with the Leases',
    answered({ states: [], problem: 'no route' }),
    'wait ControlPlaneUnknown: the Leases of the components could not be read: no route',
  ],
  ['all components work', answered({ states: [WORKING] }), 'pass'],
  [
    'the Leases are being read',
    UNASKED,
    'wait ControlPlaneUnknown: the Leases of the components are being read',
  ],
  ['one component has stopped', answered({ states: [WORKING, STOPPED] }), STOPS],
  ['it is unclear whether one works', answered({ states: [UNCLEAR] }), UNKNOWN],
  [
    'the leader has told that one has stopped',
    answered({ told: 'it has stopped' }),
    'wait ComponentNotWorking: it has stopped',
  ],
];

const working = answered({ states: [WORKING] });

export const COMPONENT_ROWS: readonly [Gate, string, GateInput, string][] = [
  ...BEFORE.flatMap(([name, components, verdict]) =>
    (['worker', 'controller'] as const).map((role): [Gate, string, GateInput, string] => [
      componentsWork,
      `before a ${role}, ${name}`,
      inputOf(role, components),
      verdict,
    ]),
  ),
  [
    componentsWorkAfter,
    'a component has renewed its Lease since the controller is done',
    inputOf('controller', working, MINUTE),
    'pass',
  ],
  [
    componentsWorkAfter,
    'a component has not renewed its Lease since the controller is done',
    inputOf('controller', working, 500),
    NOT_YET,
  ],
  [
    componentsWork,
    'before a controller that goes back, one component has stopped',
    goingBack(inputOf('controller', answered({ states: [STOPPED] }))),
    'pass',
  ],
  [
    componentsWork,
    'before a worker that goes back, one component has stopped',
    goingBack(inputOf('worker', answered({ states: [STOPPED] }))),
    STOPS,
  ],
  [componentsWorkAfter, 'a worker is done', inputOf('worker', working, 500), 'pass'],
];
