"""T448: the QR code of a device sign-in leads to the origin that is shown, or is left out."""

import pytest

from dragoman.errors import DragomanError
from tests.servers.web.auth_world import AuthWorld, Browser, answering
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("AUT-11")


@pytest.mark.parametrize("is_other", [True, False], ids=["another origin", "the same"])
async def test_t448_a_qr_code_for_another_origin_is_not_shown(is_other: bool):
    async with AuthWorld() as world:
        page = f"{world.auth.origin}/enter"
        complete = f"{world.other.origin if is_other else world.auth.origin}/enter?code=ABCD"
        world.on["/device"] = answering(
            {
                "device_code": "d",
                "user_code": "ABCD",
                "verification_uri": page,
                "verification_uri_complete": complete,
                "interval": 0.1,
            }
        )
        world.on["/token"] = answering({"error": "access_denied"}, 400)
        screen = Browser()
        async with host_of(world, clientId="me", issuer=world.auth.origin) as host:
            await host.ready(timeout=20)
            with pytest.raises(DragomanError):
                await host.sign_in("x", screen, on_device=True)
        assert screen.codes == [(page, "ABCD", None if is_other else complete)]
