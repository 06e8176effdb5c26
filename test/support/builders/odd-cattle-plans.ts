/**
 * Specs of Plans with the mistakes that people make, for strict field validation. Each row has the field that the error
 * names, and the spec.
 */
const image = 'example.com/upgrade';
const envs = (...list: readonly unknown[]) => ({ upgrade: { image, envs: list } });
const from = (valueFrom: object) => envs({ name: 'A', valueFrom });
const envFrom = (source: object) => ({ upgrade: { image, envFrom: [source] } });
const rights = (securityContext: object) => ({ upgrade: { image, securityContext } });
const plan = (spec: object) => ({ upgrade: { image }, ...spec });
const tolerations = (each: object) => plan({ tolerations: [each] });
const drain = (members: object) => plan({ drain: members });

export const REFUSED: readonly (readonly [string, object])[] = [
  ['spec.upgrade', {}],
  ['spec.upgrade.image', { upgrade: {} }],
  ['spec.surprise', plan({ surprise: 1 })],
  ['spec.concurrency', plan({ concurrency: '1' })],
  ['spec.concurrency', plan({ concurrency: 1.5 })],
  ['spec.jobActiveDeadlineSecs', plan({ jobActiveDeadlineSecs: '900' })],
  ['spec.nodeSelector.matchLabel', plan({ nodeSelector: { matchLabel: {} } })],
  [
    'spec.nodeSelector.matchExpressions[0].operator',
    plan({ nodeSelector: { matchExpressions: [{ key: 'a' }] } }),
  ],
  ['spec.tolerations[0].tolerationSecond', tolerations({ tolerationSecond: 1 })],
  ['spec.tolerations[0].efect', tolerations({ key: 'a', efect: 'NoSchedule' })],
  ['spec.tolerations[0].tolerationSeconds', tolerations({ tolerationSeconds: '60' })],
  ['spec.tolerations[0].value', tolerations({ key: 'a', value: true })],
  ['spec.window.days', plan({ window: { days: [] } })],
  ['spec.window.days', plan({ window: { days: ['Monday'] } })],
  ['spec.window.start', plan({ window: { days: ['mon'], start: '10:00' } })],
  ['spec.secrets[0].path', plan({ secrets: [{ name: 'a' }] })],
  ['spec.secrets[0].name', plan({ secrets: [{ path: 'a' }] })],
  [
    'spec.secrets[0].ignoreUpdate',
    plan({ secrets: [{ name: 'a', path: 'a', ignoreUpdate: true }] }),
  ],
  ['spec.imagePullSecrets[0].secret', plan({ imagePullSecrets: [{ secret: 'a' }] })],
  ['spec.imagePullSecrets[0]', plan({ imagePullSecrets: ['a'] })],
  ['spec.postCompleteDelay', plan({ postCompleteDelay: 30 })],
  ['spec.postCompleteLabels.a', plan({ postCompleteLabels: { a: 1 } })],
  ['spec.drain.podselector', drain({ podselector: {} })],
  ['spec.drain.gracePeriod', drain({ gracePeriod: '30' })],
  ['spec.drain.timeout', drain({ timeout: true })],
  ['spec.drain.skipWaitForDeleteTimeout', drain({ skipWaitForDeleteTimeout: '1' })],
  ['spec.upgrade.env', { upgrade: { image, env: [] } }],
  ['spec.upgrade.imagePullPolicy', { upgrade: { image, imagePullPolicy: 'Always' } }],
  ['spec.upgrade.resources', { upgrade: { image, resources: {} } }],
  ['spec.upgrade.args', { upgrade: { image, args: '--all' } }],
  [
    'spec.upgrade.volumes[0].source',
    { upgrade: { image, volumes: [{ name: 'a', destination: '/a' }] } },
  ],
  [
    'spec.upgrade.volumes[0].hostPath',
    { upgrade: { image, volumes: [{ name: 'a', hostPath: '/a' }] } },
  ],
  ['spec.prepare.image', plan({ prepare: {} })],
  ['spec.prepare.envs[0].nam', plan({ prepare: { image, envs: [{ nam: 'A' }] } })],
  [
    'spec.prepare.securityContext.priviliged',
    plan({ prepare: { image, securityContext: { priviliged: true } } }),
  ],
  ['spec.upgrade.envs[0].name', envs({ value: '1' })],
  ['spec.upgrade.envs[0].value', envs({ name: 'A', value: 1 })],
  ['spec.upgrade.envs[0].val', envs({ name: 'A', val: '1' })],
  ['spec.upgrade.envs[0].valueFrom.secretRef', from({ secretRef: { name: 'a' } })],
  ['spec.upgrade.envs[0].valueFrom.secretKeyRef.key', from({ secretKeyRef: { name: 'a' } })],
  [
    'spec.upgrade.envs[0].valueFrom.secretKeyRef.namespace',
    from({ secretKeyRef: { key: 'k', namespace: 'b' } }),
  ],
  ['spec.upgrade.envs[0].valueFrom.configMapKeyRef.key', from({ configMapKeyRef: { name: 'a' } })],
  [
    'spec.upgrade.envs[0].valueFrom.configMapKeyRef.optional',
    from({ configMapKeyRef: { key: 'a', optional: 'yes' } }),
  ],
  ['spec.upgrade.envs[0].valueFrom.fieldRef.fieldPath', from({ fieldRef: {} })],
  [
    'spec.upgrade.envs[0].valueFrom.fieldRef.path',
    from({ fieldRef: { fieldPath: 'metadata.name', path: 'a' } }),
  ],
  [
    'spec.upgrade.envs[0].valueFrom.fileKeyRef.volumeName',
    from({ fileKeyRef: { key: 'a', path: 'b' } }),
  ],
  ['spec.upgrade.envs[0].valueFrom.resourceFieldRef.resource', from({ resourceFieldRef: {} })],
  [
    'spec.upgrade.envs[0].valueFrom.resourceFieldRef.divisor',
    from({ resourceFieldRef: { resource: 'limits.cpu', divisor: '1x' } }),
  ],
  ['spec.upgrade.envFrom[0].configMap', envFrom({ configMap: { name: 'a' } })],
  ['spec.upgrade.envFrom[0].secretRef.key', envFrom({ secretRef: { name: 'a', key: 'k' } })],
  ['spec.upgrade.envFrom[0].prefix', envFrom({ prefix: 1 })],
  ['spec.upgrade.securityContext.priviliged', rights({ priviliged: true })],
  ['spec.upgrade.securityContext.privileged', rights({ privileged: 'true' })],
  ['spec.upgrade.securityContext.runAsUser', rights({ runAsUser: 'root' })],
  ['spec.upgrade.securityContext.fsGroup', rights({ fsGroup: 1 })],
  ['spec.upgrade.securityContext.capabilities.adds', rights({ capabilities: { adds: [] } })],
  ['spec.upgrade.securityContext.capabilities.add', rights({ capabilities: { add: 'SYS_BOOT' } })],
  ['spec.upgrade.securityContext.seccompProfile.type', rights({ seccompProfile: {} })],
  [
    'spec.upgrade.securityContext.appArmorProfile.type',
    rights({ appArmorProfile: { localhostProfile: 'a' } }),
  ],
  ['spec.upgrade.securityContext.seLinuxOptions.label', rights({ seLinuxOptions: { label: 'a' } })],
  [
    'spec.upgrade.securityContext.windowsOptions.hostProces',
    rights({ windowsOptions: { hostProces: true } }),
  ],
];

const reference = { name: 'a', optional: true };
const PROFILE = { type: 'Localhost', localhostProfile: 'a' };

/** Strange specs that are accepted, because the definition of the original accepts them too. */
export const TAKEN: readonly (object | undefined)[] = [
  undefined,
  plan({ concurrency: -1, jobActiveDeadlineSecs: -1, version: '', channel: '', nodeSelector: {} }),
  plan({ nodeSelector: { matchExpressions: [{ key: 'a', operator: 'Is', values: [] }] } }),
  plan({ window: {} }),
  plan({
    window: { days: ['0', 'su', 'sunday'], startTime: '25:00', endTime: '', timeZone: 'Mars' },
  }),
  plan({
    imagePullSecrets: [{}],
    postCompleteDelay: 'soon',
    postCompleteLabels: { 'not a label': '!' },
  }),
  plan({ secrets: [{ name: '', path: '', ignoreUpdates: false, defaultMode: 256 }] }),
  ...[1, 60_000_000_000, '90s', 'soon'].map((timeout) => drain({ timeout, deleteLocalData: true })),
  drain({
    deleteEmptydirData: true,
    deleteLocalData: false,
    gracePeriod: -1,
    skipWaitForDeleteTimeout: -1,
  }),
  tolerations({}),
  tolerations({ key: 'a', operator: 'Lt', value: '1', effect: 'Sometimes', tolerationSeconds: 1 }),
  {
    upgrade: {
      image: '',
      command: [],
      args: [],
      envs: [],
      envFrom: [],
      volumes: [],
      securityContext: {},
    },
  },
  envs({ name: 'A' }, { name: 'A', value: '1' }),
  from({ secretKeyRef: { ...reference, key: 'k' }, configMapKeyRef: { key: 'k' } }),
  from({
    fieldRef: { apiVersion: 'v1', fieldPath: 'a' },
    fileKeyRef: { key: 'a', path: 'b', volumeName: 'c' },
  }),
  from({ resourceFieldRef: { containerName: 'a', resource: 'b', divisor: 1 } }),
  from({ resourceFieldRef: { resource: 'b', divisor: '1Mi' } }),
  envFrom({ configMapRef: reference, secretRef: reference, prefix: 'A_' }),
  rights({
    privileged: true,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: false,
  }),
  rights({
    runAsUser: 0,
    runAsGroup: 0,
    procMount: 'Odd',
    capabilities: { add: ['A'], drop: ['ALL'] },
  }),
  rights({ appArmorProfile: PROFILE, seccompProfile: PROFILE }),
  rights({ seLinuxOptions: { level: 'a', role: 'b', type: 'c', user: 'd' } }),
  rights({
    windowsOptions: { gmsaCredentialSpec: 'a', gmsaCredentialSpecName: 'b', hostProcess: true },
  }),
];
