/** Specs of UpgradePolicies and UpdaterSets: one with all members, and specs with exactly one mistake. */

/** All members of an UpgradePolicy. */
export const POLICY = {
  plans: [
    {},
    { dialect: 'autopilot' },
    { dialect: 'cattle', namespace: 'system-upgrade', name: 'k3s-server' },
  ],
  paused: false,
  failureBudget: 2,
  maxUnavailable: '10%',
  deadlines: {
    answer: '5m',
    download: '1h30m',
    drain: '1h',
    apply: '5m',
    restart: '90s',
    ready: '10m',
    target: '8h',
  },
  drain: {
    enabled: true,
    deleteEmptyDirData: false,
    force: true,
    gracePeriodSeconds: 30,
    onDeadline: 'Skip',
    softTaint: false,
    uncordon: 'Always',
  },
  soak: '30s',
  etcdSnapshot: {
    mode: 'Require',
    keep: 3,
    timeout: '5m',
    certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  },
  versions: { allow: ['SkippedMinor', 'KubeletAhead', 'KubeletBehind'], verify: 'None' },
  payloads: { requireSha256: true, requireHttps: true },
  controllersNotReady: 'End',
  health: {
    daemonSets: 'Critical',
    resources: [
      {
        name: 'databases',
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        namespace: 'db',
        selector: { matchLabels: { app: 'db' } },
        expression: 'object.status.readyReplicas == object.spec.replicas',
        for: '1m',
      },
    ],
    alerts: [
      {
        name: 'critical-alerts',
        source: 'Alertmanager',
        url: 'https://alertmanager.example.com/base',
        labels: { severity: 'critical' },
        secretName: 'refit-health',
        for: '2m',
      },
    ],
    metrics: [
      {
        name: 'error-rate',
        url: 'http://prometheus.monitoring:9090',
        query: 'sum(rate(errors[5m]))',
        min: '-1e3',
        max: '0.01',
        secretName: 'refit-health',
        for: '2m',
      },
    ],
    http: [{ name: 'web', url: 'http://web.default/healthz', secretName: 'web', for: '30s' }],
    jobs: [{ name: 'smoke', namespace: 'web', spec: { template: { spec: {} } }, timeout: '10m' }],
    onUnknown: 'Ignore',
  },
  hooks: [
    {
      name: 'tell',
      when: 'AfterVerified',
      webhook: { url: 'https://hooks.example.com:8443/refit?team=a@b', secretName: 'refit-hooks' },
      timeout: '10m',
      onFailure: 'Ignore',
    },
  ],
  notify: [
    receiver('team-chat', 'Slack', { secretRef: { name: 'refit-notify', key: 'slack' } }),
    receiver('operations', 'Teams', { secretRef: { name: 'refit-notify', key: 'teams' } }),
    receiver('room', 'Matrix', {
      url: 'https://matrix.example.org',
      room: '!abc:example.org',
      secretRef: { name: 'refit-notify', key: 'token' },
    }),
    receiver('records', 'Webhook', {
      url: 'http://records.operations.svc/refit',
      signingKeyRef: { name: 'refit-notify', key: 'signing' },
    }),
    email('on-call', { secretName: 'refit-notify' }),
    email('relay', { server: 'smtp://[fd00::25]:25', tls: 'None', to: ["o'neil+a@mail.example"] }),
  ],
  silences: [
    { name: 'nodes', url: 'http://alertmanager.monitoring:9093' },
    {
      name: 'exporters',
      url: 'https://alertmanager.example.com/path',
      secretName: 'refit-silences',
      matchers: [
        { name: 'instance', value: '{node}:[0-9]+', isRegex: true },
        { name: 'alertname', value: 'TargetDown|NodeClockNotSynchronising', isRegex: true },
        { name: 'cluster', value: 'production' },
      ],
      duration: '10m',
    },
  ],
  edits: { afterEnd: 'Restart', whileRunning: 'Ignore' },
  newNodes: 'Include',
  windows: [
    {
      days: ['Friday', 'Saturday'],
      start: '22:00',
      length: '4h',
      timeZone: 'America/Argentina/Buenos_Aires',
    },
  ],
  blackouts: [{ from: '2026-12-20', to: '2027-01-06T06:00:00+01:00', timeZone: 'Europe/Berlin' }],
};

function webhook(url: string): object {
  return { name: 'tell', when: 'BeforeDrain', timeout: '1m', webhook: { url, secretName: 's' } };
}

function silence(...matchers: readonly object[]): object {
  return { silences: [{ name: 'nodes', url: 'http://alertmanager', matchers }] };
}

function receiver(name: string, type: string, address: object): object {
  return { name, type, events: ['Started', 'Failed', 'Done'], ...address };
}

function email(name: string, address: object): object {
  const to = ['operations@example.org', 'night@example.org'];
  const server = 'smtps://mail.example.org:465';
  return receiver(name, 'Email', { email: { server, from: 'refit@example.org', to, ...address } });
}

/**
 * Specs with one mistake. The key describes the mistake; the values are the field in `spec` that the error names, and
 * the spec.
 */
export const ODD_POLICIES: Readonly<Record<string, readonly [string, object]>> = {
  'a silence of every node': ['silences[0]', silence({ name: 'severity', value: 'warning' })],
  'a silence whose regular expression matches every node': [
    'silences[0]',
    silence({ name: 'node', value: '{node}|.*', isRegex: true }),
  ],
  'a silence without matchers': ['silences[0].matchers', silence()],
  'a silence of a label with a hyphen': [
    'silences[0].matchers[0].name',
    silence({ name: 'a-b', value: '{node}' }),
  ],
  'a silence that outlasts its leader by hours': [
    'silences[0].duration',
    { silences: [{ name: 'nodes', url: 'http://alertmanager', duration: '8h' }] },
  ],
  'a silence at a URL with a password': [
    'silences[0].url',
    { silences: [{ name: 'nodes', url: 'http://me:secret@alertmanager' }] },
  ],
  'a name in capitals': [
    'health.http[0].name',
    { health: { http: [{ name: 'Web', url: 'http://web' }] } },
  ],
  'a URL with a password': [
    'health.http[0].url',
    { health: { http: [{ name: 'web', url: 'http://me:secret@web' }] } },
  ],
  'a URL of a file': [
    'health.metrics[0].url',
    { health: { metrics: [{ name: 'rate', url: 'file:///etc', query: 'up', max: '1' }] } },
  ],
  'a webhook without TLS': ['hooks[0].webhook.url', { hooks: [webhook('http://a.example')] }],
  'a webhook with a password': [
    'hooks[0].webhook.url',
    { hooks: [webhook('https://me:secret@a.example')] },
  ],
  'a hook that does nothing': [
    'hooks[0]',
    { hooks: [{ name: 'tell', when: 'BeforeDrain', timeout: '1m' }] },
  ],
  'a hook of the whole plan that is pinned to a node': [
    'hooks[0]',
    {
      hooks: [
        {
          name: 'freeze',
          when: 'BeforePlan',
          timeout: '1m',
          job: {
            namespace: 'hooks',
            pinToNode: true,
            template: { spec: { containers: [{ name: 'c', image: 'i' }] } },
          },
        },
      ],
    },
  ],
  'two receivers of one name': [
    'notify[1]',
    {
      notify: [
        receiver('chat', 'Slack', { url: 'https://a.example' }),
        receiver('chat', 'Teams', { url: 'https://a.example' }),
      ],
    },
  ],
  'a receiver in capitals': [
    'notify[0].name',
    { notify: [receiver('Chat', 'Slack', { url: 'https://a.example' })] },
  ],
  'a receiver of no type': [
    'notify[0].type',
    { notify: [receiver('chat', 'Pager', { url: 'https://a.example' })] },
  ],
  'a receiver without an address': ['notify[0]', { notify: [receiver('chat', 'Slack', {})] }],
  'a receiver with two addresses': [
    'notify[0]',
    {
      notify: [
        receiver('chat', 'Slack', {
          url: 'https://a.example',
          secretRef: { name: 'refit-notify', key: 'slack' },
        }),
      ],
    },
  ],
  'a receiver whose URL has a password': [
    'notify[0].url',
    { notify: [receiver('chat', 'Webhook', { url: 'https://me:secret@a.example' })] },
  ],
  'a receiver whose URL is a file': [
    'notify[0].url',
    { notify: [receiver('chat', 'Webhook', { url: 'file:///etc' })] },
  ],
  'a room without Matrix': [
    'notify[0]',
    { notify: [receiver('chat', 'Slack', { url: 'https://a.example', room: '!a:b' })] },
  ],
  'Matrix without a token': [
    'notify[0]',
    { notify: [receiver('chat', 'Matrix', { url: 'https://a.example', room: '!a:b' })] },
  ],
  'an alias for a room': [
    'notify[0].room',
    {
      notify: [
        receiver('chat', 'Matrix', {
          url: 'https://a.example',
          room: '#a:b',
          secretRef: { name: 'refit-notify', key: 'token' },
        }),
      ],
    },
  ],
  'a key of the signature without Webhook': [
    'notify[0]',
    {
      notify: [
        receiver('chat', 'Slack', {
          url: 'https://a.example',
          signingKeyRef: { name: 'refit-notify', key: 'signing' },
        }),
      ],
    },
  ],
  'e-mail without an address': ['notify[0]', { notify: [receiver('mail', 'Email', {})] }],
  'e-mail with a room': ['notify[0]', { notify: [{ ...email('mail', {}), room: '!a:b' }] }],
  'e-mail to a chat': ['notify[0]', { notify: [{ ...email('mail', {}), type: 'Slack' }] }],
  'a mail server whose URL has a password': [
    'notify[0].email.server',
    { notify: [email('mail', { server: 'smtps://me:secret@mail.example.org' })] },
  ],
  'a mail server whose URL has a path': [
    'notify[0].email.server',
    { notify: [email('mail', { server: 'smtps://mail.example.org/a' })] },
  ],
  'a sender with a line break': [
    'notify[0].email.from',
    { notify: [email('mail', { from: 'refit@example.org\r\nBcc: all@example.org' })] },
  ],
  'a recipient with a name': [
    'notify[0].email.to[0]',
    { notify: [email('mail', { to: ['Night <night@example.org>'] })] },
  ],
  'two recipients in one text': [
    'notify[0].email.to[0]',
    { notify: [email('mail', { to: ['a@example.org,b@example.org'] })] },
  ],
  'e-mail to nobody': ['notify[0].email.to', { notify: [email('mail', { to: [] })] }],
  'a mail server with TLS that needs none': [
    'notify[0].email',
    { notify: [email('mail', { tls: 'None' })] },
  ],
  'a password without TLS': [
    'notify[0].email',
    {
      notify: [email('mail', { server: 'smtp://mail', tls: 'None', secretName: 'refit-notify' })],
    },
  ],
  'a receiver of no events': [
    'notify[0].events',
    { notify: [{ name: 'chat', type: 'Slack', url: 'https://a.example', events: [] }] },
  ],
  'an event that is none': [
    'notify[0].events[0]',
    { notify: [{ name: 'chat', type: 'Slack', url: 'https://a.example', events: ['Begun'] }] },
  ],
  'a metric without bounds': [
    'health.metrics[0]',
    { health: { metrics: [{ name: 'rate', url: 'http://p', query: 'up' }] } },
  ],
  'a bound that is no number': [
    'health.metrics[0].max',
    { health: { metrics: [{ name: 'rate', url: 'http://p', query: 'up', max: '1%' }] } },
  ],
  'alerts of all labels': [
    'health.alerts[0].labels',
    { health: { alerts: [{ name: 'any', source: 'Prometheus', url: 'http://p', labels: {} }] } },
  ],
  'one name twice': [
    'health.http[1]',
    {
      health: {
        http: [
          { name: 'web', url: 'http://a' },
          { name: 'web', url: 'http://b' },
        ],
      },
    },
  ],
  'a dialect that nobody speaks': ['plans[0].dialect', { plans: [{ dialect: 'k0s' }] }],
  'a text for a switch': ['paused', { paused: 'yes' }],
  'a budget below zero': ['failureBudget', { failureBudget: -1 }],
  'half a node': ['failureBudget', { failureBudget: 0.5 }],
  'no node that may be down': ['maxUnavailable', { maxUnavailable: 0 }],
  'a share above all': ['maxUnavailable', { maxUnavailable: '101%' }],
  'a share without its sign': ['maxUnavailable', { maxUnavailable: '10' }],
  'a deadline without a unit': ['deadlines.download', { deadlines: { download: '90' } }],
  'a number for a deadline': ['deadlines.target', { deadlines: { target: 90 } }],
  'a way to drain that is none': ['drain.onDeadline', { drain: { onDeadline: 'wait' } }],
  'a grace period below zero': ['drain.gracePeriodSeconds', { drain: { gracePeriodSeconds: -1 } }],
  'an end that is none': ['controllersNotReady', { controllersNotReady: 'Stop' }],
  'an edit that is none': ['edits.afterEnd', { edits: { afterEnd: 'Always' } }],
  'new nodes that end the plan': ['newNodes', { newNodes: 'Restart' }],
  'an edit that ends the plan': ['edits.whileRunning', { edits: { whileRunning: 'Restart' } }],
  'a rule that is none': ['versions.allow[0]', { versions: { allow: ['Everything'] } }],
  'a rule twice': ['versions.allow[1]', { versions: { allow: ['Downgrade', 'Downgrade'] } }],
  'a proof of versions that is none': ['versions.verify', { versions: { verify: 'Agent' } }],
  'many Tuesdays': [
    'windows[0].days[0]',
    { windows: [{ ...POLICY.windows[0], days: ['Tuesdays'] }] },
  ],
  'an hour after the last': [
    'windows[0].start',
    { windows: [{ ...POLICY.windows[0], start: '24:00' }] },
  ],
  'an hour of one digit': [
    'windows[0].start',
    { windows: [{ ...POLICY.windows[0], start: '9:00' }] },
  ],
  'an offset for a zone': [
    'windows[0].timeZone',
    { windows: [{ ...POLICY.windows[0], timeZone: '+02:00' }] },
  ],
  'a zone of too many characters': [
    'windows[0].timeZone',
    { windows: [{ ...POLICY.windows[0], timeZone: 'Z'.repeat(65) }] },
  ],
  'a namespace of too many characters': [
    'plans[0].namespace',
    { plans: [{ namespace: 'n'.repeat(64) }] },
  ],
  'a plan of too many characters': ['plans[0].name', { plans: [{ name: 'n'.repeat(254) }] }],
  'a window without a zone': [
    'windows[0].timeZone',
    { windows: [{ start: '22:00', length: '4h' }] },
  ],
  'a blackout without end': ['blackouts[0].to', { blackouts: [{ from: '2026-12-20' }] }],
  'no time at all': ['deadlines.restart', { deadlines: { restart: '0s' } }],
  'a deadline of more than a year': ['deadlines.target', { deadlines: { target: '8761h' } }],
  'a key next to the certificate': [
    'etcdSnapshot.certificate',
    {
      etcdSnapshot: {
        certificate:
          '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n',
      },
    },
  ],
  'no snapshot to keep': ['etcdSnapshot.keep', { etcdSnapshot: { keep: 0 } }],
  'a window of more than a week': [
    'windows[0].length',
    { windows: [{ ...POLICY.windows[0], length: '169h' }] },
  ],
  'a window of no length': [
    'windows[0].length',
    { windows: [{ ...POLICY.windows[0], length: '0h' }] },
  ],
  'a day that no calendar has': [
    'blackouts[0].to',
    { blackouts: [{ from: '2026-02-01', to: '2026-02-30' }] },
  ],
  'dates in the wrong order': [
    'blackouts[0]',
    { blackouts: [{ from: '2027-01-02', to: '2027-01-01' }] },
  ],
  'times in the wrong order': [
    'blackouts[0]',
    { blackouts: [{ from: '2027-01-01T12:00:00+02:00', to: '2027-01-01T10:00:00Z' }] },
  ],
  'a time without a zone': [
    'blackouts[0].from',
    { blackouts: [{ from: '2026-12-20T18:00:00', to: '2027-01-01' }] },
  ],
};

const CA_BUNDLE = 'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==';
const SERVER = { name: 'a', url: 'https://a.example.com:8443/hooks', caBundle: CA_BUNDLE };
const SERVICE = { name: 'files', namespace: 'updaters' };

/** All members of an UpdaterSet. */
export const UPDATER_SET = {
  selector: { matchLabels: { pool: 'gpu' } },
  updaters: [
    { name: 'refit', refit: {} },
    {
      ...SERVER,
      clientCertificate: 'a',
      handlers: {
        canUpdateMachine: 'can',
        canUpdateMachineSet: 'can-set',
        updateMachine: 'update',
      },
      selector: { matchExpressions: [{ key: 'os', operator: 'Exists' }] },
      settings: { region: 'lab' },
      timeoutSeconds: 5,
      onUnavailable: 'Refuse',
    },
    { name: 'b', service: { ...SERVICE, path: '/v1', port: 9443 }, caBundle: CA_BUNDLE },
  ],
  uncovered: 'Refuse',
};

export const ODD_UPDATER_SETS: Readonly<Record<string, readonly [string, object]>> = {
  'no updater': ['updaters', { updaters: [] }],
  'an updater that is nobody': ['updaters[0]', { updaters: [{ name: 'a' }] }],
  'a URL and a Service': ['updaters[0]', { updaters: [{ ...SERVER, service: SERVICE }] }],
  'Refit with a URL': ['updaters[0]', { updaters: [{ ...SERVER, refit: {} }] }],
  'Refit with a CA': ['updaters[0]', { updaters: [{ name: 'a', refit: {}, caBundle: CA_BUNDLE }] }],
  'Refit with a client certificate': [
    'updaters[0]',
    { updaters: [{ name: 'a', refit: {}, clientCertificate: 'b' }] },
  ],
  'Refit twice': [
    'updaters',
    {
      updaters: [
        { name: 'a', refit: {} },
        { name: 'b', refit: {} },
      ],
    },
  ],
  'a server without a CA': ['updaters[0]', { updaters: [{ name: 'a', url: SERVER.url }] }],
  'plain http': ['updaters[0].url', { updaters: [{ ...SERVER, url: 'http://a.example.com' }] }],
  'a password in a URL': [
    'updaters[0].url',
    { updaters: [{ ...SERVER, url: 'https://me:it@a.example.com' }] },
  ],
  'a query in a URL': [
    'updaters[0].url',
    { updaters: [{ ...SERVER, url: 'https://a.example.com/?b' }] },
  ],
  'a folder elsewhere': [
    'updaters[0].clientCertificate',
    { updaters: [{ ...SERVER, clientCertificate: '../a' }] },
  ],
  'the same name twice': ['updaters[1]', { updaters: [SERVER, SERVER] }],
  'a label of too many characters': [
    'selector.matchExpressions[0].key',
    {
      updaters: [SERVER],
      selector: { matchExpressions: [{ key: 'k'.repeat(318), operator: 'Exists' }] },
    },
  ],
  'a policy that is none': ['uncovered', { updaters: [SERVER], uncovered: 'Ignore' }],
};
