/** Tests the conformance of tables: the columns and rows that `kubectl get` requests from the server. */
import { WHY_NO_SUCCESS_CRITERIA, WHY_NO_WATCH_LISTS, whyNotUntil } from '../testenv/since.ts';
import { del, end, events, get, merge, post, type Step, watch } from './harness/case.ts';
import {
  ANYTHING,
  DEFINITIONS,
  LEASES,
  NODES,
  node,
  PODS,
  WIDGETS,
  widget,
  widgetDefinition,
  widgetFixture,
} from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

/** The header that kubectl sends. */
const accept =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';
const asTable = { accept };
const CORE = '/api/v1/namespaces/$ns';
const LONG_AGO = '2020-02-03T04:05:06Z';

const definition = widgetDefinition(ANYTHING, {
  status: ANYTHING,
  version: {
    additionalPrinterColumns: [
      { name: 'Text', type: 'string', jsonPath: '.spec.text' },
      { name: 'Number', type: 'integer', jsonPath: '.spec.number', priority: 1 },
      { name: 'Share', type: 'number', jsonPath: '.spec.share', format: 'double' },
      { name: 'Flag', type: 'boolean', jsonPath: '.spec.flag' },
      { name: 'Since', type: 'date', jsonPath: '.spec.since' },
      { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
      { name: 'Said', type: 'string', jsonPath: ".status.conditions[?(@.message!='')].message" },
      { name: 'Names', type: 'string', jsonPath: '.spec.items[*].name' },
      { name: 'Second', type: 'string', jsonPath: '.spec.items[1].name' },
      { name: 'Label', type: 'string', jsonPath: '.metadata.labels.example\\.com/a' },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ],
  },
});
const full = widget(
  'full',
  {
    text: 'a text',
    number: 3,
    share: 0.5,
    flag: true,
    since: LONG_AGO,
    items: [{ name: 'one' }, { name: 'two' }],
  },
  { labels: { 'example.com/a': 'b' } },
);
/** A widget whose values have other types than the columns of these values. */
const odd = widget('odd', {
  text: { a: [1, 'b'] },
  number: 'three',
  share: 4,
  flag: 'yes',
  since: 'yesterday',
  items: [],
});
const status = {
  conditions: [
    { type: 'Ready', status: 'True', message: '' },
    { type: 'Other', status: 'False', message: 'not yet' },
  ],
};

const testCase = conformance('tables', [widgetFixture(definition)]);

testCase('custom objects, one and all', [
  get(WIDGETS, asTable),
  post(WIDGETS, full),
  post(WIDGETS, widget('empty')),
  post(WIDGETS, odd),
  merge(`${WIDGETS}/full/status`, { status }),
  get(WIDGETS, asTable),
  get(`${WIDGETS}/full`, asTable),
  get(`${WIDGETS}/none`, asTable),
]);
testCase('what a row carries', [
  post(WIDGETS, widget('a', { text: 'x' })),
  get(`${WIDGETS}?includeObject=None`, asTable),
  get(`${WIDGETS}?includeObject=Object`, asTable),
  get(`${WIDGETS}?includeObject=Else`, asTable),
  post(LEASES, { metadata: { name: 'a' } }),
  get(`${LEASES}?includeObject=Object`, asTable),
]);
testCase('the form that comes first counts', [
  post(WIDGETS, widget('a')),
  get(`${WIDGETS}/a`, { accept: `application/json,${accept}` }),
  get(`${WIDGETS}/a`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
]);
testCase('pages of a table', [
  post(WIDGETS, widget('a')),
  post(WIDGETS, widget('b')),
  get(`${WIDGETS}?limit=1`, asTable),
]);
testCase('writes may be answered as tables', [
  post(WIDGETS, widget('a'), asTable),
  merge(`${WIDGETS}/a`, { spec: { text: 'b' } }, asTable),
  del(`${WIDGETS}/a`, undefined, asTable),
]);
testCase('a watch sends tables', [
  post(WIDGETS, widget('a')),
  watch('w', `${WIDGETS}?watch=true&timeoutSeconds=4`, asTable),
  events('w', 1),
  merge(`${WIDGETS}/a`, { spec: { text: 'b' } }),
  del(`${WIDGETS}/a`),
  end('w'),
]);
testCase(
  'the first bookmark of a watch',
  [
    post(WIDGETS, widget('a')),
    watch(
      'w',
      `${WIDGETS}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`,
      asTable,
    ),
    events('w', 2),
  ],
  WHY_NO_WATCH_LISTS,
);

const nodeTable = (more: object, labels: object = {}): Step[] => [
  post(NODES, node({ labels }, more)),
  get(`${NODES}/$id?includeObject=None`, asTable),
];
testCase(
  'a node that is ready',
  nodeTable(
    {
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        addresses: [
          { type: 'InternalIP', address: '10.0.0.1' },
          { type: 'ExternalIP', address: '192.0.2.1' },
        ],
        nodeInfo: {
          kubeletVersion: 'v1.36.3',
          osImage: 'An OS',
          kernelVersion: '6.1',
          containerRuntimeVersion: 'containerd://2',
        },
      },
    },
    {
      'node-role.kubernetes.io/worker': '',
      'node-role.kubernetes.io/control-plane': 'true',
      'kubernetes.io/role': 'old',
    },
  ),
);
testCase(
  'a node that is cordoned and not ready',
  nodeTable({
    spec: { unschedulable: true },
    status: { conditions: [{ type: 'Ready', status: 'Unknown' }] },
  }),
);
testCase('a node of which nothing is known', nodeTable({ spec: { unschedulable: true } }));

const ABOUT = { kind: 'Plan', namespace: '$ns', name: 'p', apiVersion: 'example.com/v1' };
const event = (more: object): object => ({
  metadata: { name: 'e' },
  involvedObject: ABOUT,
  reason: 'Done',
  message: ' a message\n',
  type: 'Normal',
  ...more,
});
const eventTable = (more: object): Step[] => [
  post(`${CORE}/events`, event(more)),
  get(`${CORE}/events`, asTable),
];
testCase(
  'an event of the old style',
  eventTable({
    source: { component: 'refit', host: 'a' },
    firstTimestamp: LONG_AGO,
    lastTimestamp: '2023-02-03T04:05:06Z',
    count: 4,
  }),
);
testCase(
  'an event of the new style',
  eventTable({
    eventTime: '2020-02-03T04:05:06.000000Z',
    series: { count: 7, lastObservedTime: '2023-02-03T04:05:06.000000Z' },
    reportingComponent: 'example.com/refit',
    reportingInstance: 'refit-1',
    action: 'Signal',
  }),
);
testCase(
  'an event without times',
  eventTable({ involvedObject: { ...ABOUT, name: '', fieldPath: 'spec' } }),
);

const container = { name: 'main', image: 'example.com/main:1' };
/**
 * Requests only the rows, also for writes. The sandbox keeps the statuses of containers and the templates of pods
 * unchanged, so whole objects would differ.
 */
const bare = '?includeObject=None';

const podTable = (status: object, spec: object = {}): Step[] => [
  post(
    `${PODS}${bare}`,
    {
      metadata: { name: 'p' },
      spec: {
        schedulerName: 'nobody',
        automountServiceAccountToken: false,
        containers: [container, { ...container, name: 'second' }],
        ...spec,
      },
    },
    asTable,
  ),
  merge(`${PODS}/p/status${bare}`, { status }, asTable),
];
const running = { ready: true, restartCount: 0, image: 'i', imageID: 'i', state: { running: {} } };
const exited = (exitCode: number, more: object = {}): object => ({
  terminated: { exitCode, ...more },
});
testCase('a pod that waits for its node', podTable({}));
testCase(
  'a pod that runs',
  podTable({
    phase: 'Running',
    podIP: '10.1.1.1',
    podIPs: [{ ip: '10.1.1.1' }],
    containerStatuses: [
      { name: 'main', ...running, restartCount: 2, lastState: exited(1, { finishedAt: LONG_AGO }) },
      { name: 'second', ...running },
    ],
  }),
);
testCase(
  'a pod whose container crashes',
  podTable({
    phase: 'Running',
    containerStatuses: [
      {
        name: 'main',
        ...running,
        ready: false,
        restartCount: 3,
        state: { waiting: { reason: 'CrashLoopBackOff' } },
      },
      { name: 'second', ...running, ready: false, state: exited(0, { reason: 'Completed' }) },
    ],
  }),
);
testCase('a pod that has succeeded', podTable({ phase: 'Succeeded' }));
testCase(
  'a pod whose container was killed',
  podTable({
    phase: 'Failed',
    containerStatuses: [
      { name: 'main', ...running, ready: false, state: exited(137, { signal: 9 }) },
    ],
  }),
);
testCase(
  'a pod with a completed and a running container',
  podTable({
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'False' }],
    containerStatuses: [
      { name: 'main', ...running },
      { name: 'second', ...running, ready: false, state: exited(0, { reason: 'Completed' }) },
    ],
  }),
);
const initial = {
  initContainers: [
    { ...container, name: 'a' },
    { ...container, name: 'b' },
  ],
};
testCase(
  'a pod whose init containers run',
  podTable(
    {
      phase: 'Pending',
      initContainerStatuses: [
        { name: 'a', ...running, restartCount: 1, state: exited(0) },
        { name: 'b', ...running, ready: false },
      ],
    },
    initial,
  ),
);
testCase(
  'a pod whose init container failed',
  podTable(
    {
      phase: 'Pending',
      initContainerStatuses: [{ name: 'a', ...running, ready: false, state: exited(3) }],
    },
    initial,
  ),
);
testCase(
  'a pod with a sidecar and gates',
  podTable(
    {
      phase: 'Running',
      conditions: [{ type: 'example.com/a', status: 'True' }],
      initContainerStatuses: [{ name: 'a', ...running, started: true, restartCount: 5 }],
      containerStatuses: [{ name: 'main', ...running }],
    },
    {
      initContainers: [{ ...container, name: 'a', restartPolicy: 'Always' }],
      readinessGates: [{ conditionType: 'example.com/a' }, { conditionType: 'example.com/b' }],
    },
  ),
);

const JOBS = '/apis/batch/v1/namespaces/$ns/jobs';
const job = (spec: object): object => ({
  metadata: { name: 'j' },
  spec: {
    // This makes the controller of the real cluster ignore the Job.
    managedBy: 'example.com/nobody',
    template: { metadata: {}, spec: { restartPolicy: 'Never', containers: [container] } },
    ...spec,
  },
});
const jobTable = (spec: object, status?: object): Step[] => [
  post(`${JOBS}${bare}`, job(spec), asTable),
  ...(status ? [merge(`${JOBS}/j/status${bare}`, { status }, asTable)] : []),
];
const seconds = (at: number): string => `2020-02-03T04:05:${at}Z`;
testCase('a Job that runs', jobTable({ completions: 3, parallelism: 2 }));
testCase('a Job without completions', jobTable({ parallelism: 2 }));
testCase(
  'a Job that is complete',
  jobTable(
    {},
    {
      startTime: seconds(10),
      completionTime: seconds(25),
      succeeded: 1,
      uncountedTerminatedPods: {},
      conditions: ['SuccessCriteriaMet', 'Complete'].map((type) => {
        return {
          type,
          status: 'True',
          lastTransitionTime: seconds(25),
          lastProbeTime: seconds(25),
        };
      }),
    },
  ),
  WHY_NO_SUCCESS_CRITERIA,
);

testCase('a namespace, a Secret and a ConfigMap', [
  get('/api/v1/namespaces/kube-public?includeObject=None', asTable),
  post(`${CORE}/secrets`, { metadata: { name: 's' }, data: { a: 'YQ==', b: 'YQ==' } }),
  get(`${CORE}/secrets/s`, asTable),
  post(`${CORE}/configmaps`, {
    metadata: { name: 'c' },
    data: { a: 'b' },
    binaryData: { c: 'YQ==' },
  }),
  get(`${CORE}/configmaps/c`, asTable),
]);
testCase('a Lease', [
  post(LEASES, { metadata: { name: 'free' } }),
  post(LEASES, { metadata: { name: 'held' }, spec: { holderIdentity: 'me' } }),
  get(LEASES, asTable),
]);
const BUDGETS = '/apis/policy/v1/namespaces/$ns/poddisruptionbudgets';
testCase('PodDisruptionBudgets', [
  post(BUDGETS, { metadata: { name: 'a' }, spec: { minAvailable: 1 } }),
  post(BUDGETS, { metadata: { name: 'b' }, spec: { maxUnavailable: '50%' } }),
  get(`${BUDGETS}?includeObject=None`, asTable),
]);
testCase(
  'a definition',
  [get(`${DEFINITIONS}/widgets.$group?includeObject=None`, asTable)],
  whyNotUntil(36, 'shows only the name and the age of a definition'),
);
