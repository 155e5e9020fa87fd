// An authorization server and identity provider on loopback: `node authorization_server.mjs NODE_MODULES`.
//
// oidc-provider with dynamic registration, PKCE required, rotating refresh tokens with reuse detection, revocation,
// introspection, resource indicators, `iss` in answers, the device flow, client credentials, token exchange to an
// ID-JAG, and jwt-bearer. Options are JSON in the variable OPTIONS. The first line of the output is JSON with the issuer.
// GET /counts says what happened; POST /expire makes all access tokens invalid.

import * as http from 'node:http';
import { pathToFileURL } from 'node:url';

const modules = pathToFileURL(`${process.argv[2]}/`);
const { default: Provider, errors } = await import(new URL('oidc-provider/lib/index.js', modules));
const jose = await import(new URL('jose/dist/webapi/index.js', modules));

const { tokenSeconds = 3600, clients = [] } = JSON.parse(process.env.OPTIONS ?? '{}');
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';
const SCOPES = ['read', 'write', 'admin'];

console.warn = console.info = () => {};
const { privateKey } = await jose.generateKeyPair('RS256', { extractable: true });
const key = { ...await jose.exportJWK(privateKey), alg: 'RS256', use: 'sig', kid: 'one' };

const server = http.createServer();
await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
const issuer = `http://127.0.0.1:${server.address().port}`;

const native = { application_type: 'native', token_endpoint_auth_method: 'none', response_types: ['code'] };
const machine = { redirect_uris: [], response_types: [], token_endpoint_auth_method: 'client_secret_basic' };
const provider = new Provider(issuer, {
  clients: [
    { ...machine, client_id: 'protected-server', client_secret: 'its own secret', grant_types: [] },
    { ...machine, client_id: 'robot', client_secret: 'the robot secret', grant_types: ['client_credentials'] },
    { ...machine, client_id: 'host-here', client_secret: 'the host secret', grant_types: [JWT_BEARER] },
    {
      client_id: 'host-at-company',
      client_secret: 'the company secret',
      application_type: 'native',
      redirect_uris: ['http://localhost/callback'],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token', TOKEN_EXCHANGE],
      token_endpoint_auth_method: 'client_secret_basic',
    },
    { ...native, client_id: 'known', redirect_uris: ['http://localhost/callback'], grant_types: ['authorization_code', 'refresh_token'] },
    ...clients,
  ],
  jwks: { keys: [key] },
  cookies: { keys: ['a key for cookies'] },
  scopes: ['openid', 'offline_access', ...SCOPES],
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    introspection: { enabled: true, allowedPolicy: () => true },
    deviceFlow: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: SCOPES.join(' '),
        audience: resource,
        accessTokenTTL: tokenSeconds,
        accessTokenFormat: 'opaque',
      }),
    },
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
  ttl: { AccessToken: tokenSeconds, ClientCredentials: tokenSeconds, IdToken: 3600, RefreshToken: 86400, Grant: 86400, Session: 86400, Interaction: 3600, DeviceCode: 600 },
});

// --- Company sign-on -----------------------------------------------------------------------------------------------
const company = jose.createRemoteJWKSet(new URL(`${issuer}/jwks`));

provider.registerGrantType(TOKEN_EXCHANGE, async (ctx) => {
  const { params, client } = ctx.oidc;
  if (params.requested_token_type !== ID_JAG) throw new errors.InvalidRequest('only for ID-JAG');
  const { payload } = await jose.jwtVerify(params.subject_token, company, { issuer, audience: client.clientId });
  const assertion = await new jose.SignJWT({ client_id: 'host-here', scope: params.scope, resource: params.resource })
    .setProtectedHeader({ alg: 'RS256', typ: 'oauth-id-jag+jwt', kid: 'one' })
    .setIssuer(issuer).setSubject(payload.sub).setAudience(params.audience).setJti(crypto.randomUUID())
    .setIssuedAt().setExpirationTime('5m').sign(privateKey);
  ctx.body = { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300 };
}, ['requested_token_type', 'audience', 'resource', 'subject_token', 'subject_token_type', 'scope']);

provider.registerGrantType(JWT_BEARER, async (ctx) => {
  const { params, client } = ctx.oidc;
  const { payload } = await jose.jwtVerify(params.assertion, company, { issuer, audience: issuer, typ: 'oauth-id-jag+jwt' });
  if (payload.client_id !== client.clientId) throw new errors.InvalidGrant('the assertion is for another client');
  const token = new provider.ClientCredentials({ client, scope: payload.scope });
  token.resourceServer = new provider.ResourceServer(payload.resource, { scope: SCOPES.join(' '), audience: payload.resource, accessTokenTTL: tokenSeconds, accessTokenFormat: 'opaque' });
  ctx.body = { access_token: await token.save(), token_type: 'Bearer', expires_in: tokenSeconds, scope: payload.scope };
}, ['assertion', 'scope', 'resource']);

// --- What happened -------------------------------------------------------------------------------------------------
const counts = { grants: {}, refusals: [], reuses: 0, refreshedAt: [], revoked: 0, registrations: 0, authorizations: 0 };
const live = new Set();
provider.on('access_token.saved', (token) => live.add(token));
provider.on('grant.success', (ctx) => {
  const type = ctx.oidc.params.grant_type;
  counts.grants[type] = (counts.grants[type] ?? 0) + 1;
  if (type === 'refresh_token') counts.refreshedAt.push(performance.now());
});
provider.on('grant.error', (ctx, error) => {
  if (error.error === 'authorization_pending') return;
  counts.refusals.push(`${error.error}: ${error.error_detail ?? error.error_description}`);
  if (error.error_detail === 'refresh token already used') counts.reuses += 1;
});
provider.on('grant.revoked', () => { counts.revoked += 1; });
provider.on('registration_create.success', () => { counts.registrations += 1; });
provider.on('authorization.success', () => { counts.authorizations += 1; });
provider.on('server_error', (ctx, error) => { counts.refusals.push(`fault: ${error.stack}`); });

const answers = provider.callback();
server.on('request', async (request, response) => {
  if (request.url === '/counts') {
    response.end(JSON.stringify(counts));
  } else if (request.url === '/expire') {
    await Promise.all([...live].map((token) => token.destroy()));
    live.clear();
    response.end();
  } else {
    answers(request, response);
  }
});
console.log(JSON.stringify({ issuer }));
